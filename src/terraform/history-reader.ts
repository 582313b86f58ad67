import { type AttributeLayout, AttributesHasher } from './attributes-hash.ts';
import { DEFAULT_STATE_DOCUMENT_LIMITS, readStateDocument, type StateDocumentLimits } from './document.ts';
import { MAX_COMPARED_BYTES } from './limits.ts';
import { type Projection, projectResources } from './projection.ts';

/**
 * Reads the versions of one state, one after the other in serial order. Most of a state is the same from one version to the
 * next: what stands in the document before, byte for byte, is compared and not looked at again. What is read, and what is
 * refused, is as if each document had been read alone.
 *
 * Between two documents it holds the one before and some 300 bytes for each of its instances; but one that is longer than
 * {@link MAX_COMPARED_BYTES} is read as if it were alone.
 */
export class StateHistoryReader {
  readonly #limits: StateDocumentLimits;
  readonly #hasher: AttributesHasher;
  #former: Projection | null = null;

  constructor(layout: AttributeLayout, limits: StateDocumentLimits = DEFAULT_STATE_DOCUMENT_LIMITS) {
    this.#limits = limits;
    this.#hasher = new AttributesHasher(layout);
  }

  /**
   * Checks and projects the next document.
   *
   * @param bytes must not change before the document after it has been read, or refused; then they may.
   * @throws UnsupportedStateDocumentError naming the path, never a value. The next document is then read as if it were the
   *   first.
   */
  read(bytes: Buffer): Projection {
    const former = this.#former;
    this.#former = null;
    const document = readStateDocument(bytes, this.#limits, former?.document);
    const projection = projectResources(document, this.#hasher, former);
    this.#former = bytes.length > MAX_COMPARED_BYTES ? null : projection;
    return projection;
  }

  /** The next document is read as if it were the first: the bytes of the one before may change from now on. */
  forget(): void {
    this.#former = null;
  }
}
