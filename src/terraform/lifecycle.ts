import type { ResourceSummary, ResourcesByAddress } from './projection.ts';

/**
 * Which resource rows open and close at each version of one state (data model 3.7).
 *
 * Holds one hash per open address and nothing else, whatever the length of the history.
 */
export class ResourceLifecycle {
  readonly #open: Map<string, string>;
  #last: bigint | null = null;

  /** @param open - address and `attributes_hash` of rows open before the first version to be applied. */
  constructor(open: Iterable<readonly [address: string, attributesHash: string]> = []) {
    this.#open = new Map(open);
  }

  /**
   * Takes the next version. An address whose content changed is in both lists: its row closes and another
   * opens at the same serial. An equal hash keeps the row open, whatever the fields it does not cover.
   *
   * @throws RangeError when `serial` does not rise from call to call.
   */
  apply<Resource extends ResourceSummary>(
    serial: bigint,
    resources: ResourcesByAddress<Resource>,
  ): { opened: Resource[]; closed: string[] } {
    if (this.#last !== null && serial <= this.#last) {
      throw new RangeError(`Versions must be applied in serial order: ${serial} came after ${this.#last}`);
    }
    this.#last = serial;
    const closed: string[] = [];
    for (const address of this.#open.keys()) {
      if (!resources.has(address)) {
        this.#open.delete(address);
        closed.push(address);
      }
    }
    const opened: Resource[] = [];
    for (const [address, resource] of resources) {
      const hash = this.#open.get(address);
      if (hash === resource.attributesHash) continue;
      if (hash !== undefined) closed.push(address);
      this.#open.set(address, resource.attributesHash);
      opened.push(resource);
    }
    return { opened, closed };
  }
}
