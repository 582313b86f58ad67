import { readInto } from '../base/read-into.ts';
import { readStateDocument, type StateDocument } from '../terraform/document.ts';
import { UnsupportedStateDocumentError } from '../terraform/errors.ts';
import { MAX_COMPARED_BYTES, type StateDocumentLimits } from '../terraform/limits.ts';
import { KlError } from './endings.ts';

/** Reads a document; what is wrong with it is told by `what` it is. @throws KlError. */
export function readNamed(what: string, bytes: Buffer, limits?: StateDocumentLimits): StateDocument {
  try {
    return readStateDocument(bytes, limits);
  } catch (error) {
    throw namedDocument(what, error);
  }
}

/** An error of reading a document as `kl` ends with it: what is wrong with the document is told by `what` it is. */
export function namedDocument(what: string, error: unknown, advice: string | null = null): unknown {
  if (!(error instanceof UnsupportedStateDocumentError)) return error;
  return new KlError(error.code, `${what}: at ${error.path}, ${error.reason}.`, { advice });
}

/**
 * Reads the documents of a history one after the other: what one has in common with the one before is looked at once. Two
 * pieces of memory take turns.
 */
export class DocumentReader {
  #memory = Buffer.alloc(0);
  #formerMemory = Buffer.alloc(0);
  #former: StateDocument | null = null;

  /**
   * @returns the document; its bytes change when the one after the next is read.
   * @throws UnsupportedStateDocumentError, and what `content` throws.
   */
  async read(content: AsyncIterable<Uint8Array>, byteLength: number): Promise<StateDocument> {
    const former = byteLength > MAX_COMPARED_BYTES ? null : this.#former;
    this.#former = null;
    if (former === null) this.#formerMemory = Buffer.alloc(0);
    [this.#memory, this.#formerMemory] = [this.#formerMemory, this.#memory];
    if (byteLength > this.#memory.length) {
      // Let go first: both together may be more than there is.
      this.#memory = Buffer.alloc(0);
      this.#memory = Buffer.allocUnsafeSlow(byteLength);
    }
    const bytes = this.#memory.subarray(0, byteLength);
    await readInto(bytes, content);
    this.#former = readStateDocument(bytes, undefined, former);
    return this.#former;
  }
}
