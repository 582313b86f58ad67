import type { AttributeLayout } from './attributes-hash.ts';
import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  readStateDocument,
  type StateDocument,
  type StateDocumentLimits,
} from './document.ts';
import { MAX_COMPARED_BYTES } from './limits.ts';
import { type Projection, Projector } from './projection.ts';
import { INSTANCE } from './state-index.ts';

/** One version of a state, read. */
export interface StateVersion {
  readonly document: StateDocument;
  readonly projection: Projection;
  /** How many resource instances it has. */
  readonly instances: number;
  /** How many of these were taken over from the version before, because nothing of what they show had changed. */
  readonly reusedInstances: number;
}

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
  readonly #projector: Projector;
  #former: Projection | null = null;

  constructor(layout: AttributeLayout, limits: StateDocumentLimits = DEFAULT_STATE_DOCUMENT_LIMITS) {
    this.#limits = limits;
    this.#projector = new Projector(layout);
  }

  /**
   * Checks and projects the next document.
   *
   * @param bytes must not change before the document after it has been read, or refused; then they may.
   * @throws UnsupportedStateDocumentError naming the path, never a value. The next document is then read as if it were the
   *   first.
   */
  read(bytes: Buffer): StateVersion {
    const former = this.#former;
    this.#former = null;
    const document = readStateDocument(bytes, this.#limits, former?.document);
    const projection = this.#projector.project(document, former);
    this.#former = bytes.length > MAX_COMPARED_BYTES ? null : projection;
    let reusedInstances = 0;
    for (const row of document.rows()) {
      if (document.index.instances.get(row, INSTANCE.from) !== 0) reusedInstances += 1;
    }
    return { document, projection, instances: document.instanceCount, reusedInstances };
  }

  /** The next document is read as if it were the first: the bytes of the one before may change from now on. */
  forget(): void {
    this.#former = null;
  }
}
