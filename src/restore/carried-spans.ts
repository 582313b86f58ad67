import type { ArchivedResource } from '../archive/model.ts';
import type { RestoreRequest } from './restore-request.ts';
import { archiveMembers } from './restore-request.ts';

/**
 * The resource spans an archive carries, dealt out as the versions that begin them come by. Only one span is held: the
 * member stands in the order of creating serials, and is read beside the versions.
 */
export class CarriedSpans {
  readonly #spans: AsyncGenerator<ArchivedResource, void, void>;
  #next: ArchivedResource | null = null;

  constructor(request: RestoreRequest) {
    this.#spans = readSpans(request);
  }

  /** The spans that begin at `serial`, or at one that was passed over: these have no version to begin at. */
  async take(serial: bigint): Promise<{ readonly begun: ArchivedResource[]; readonly passedOver: number }> {
    const begun: ArchivedResource[] = [];
    let passedOver = 0;
    for (;;) {
      this.#next ??= (await this.#spans.next()).value ?? null;
      if (this.#next === null || this.#next.createSerial > serial) return { begun, passedOver };
      if (this.#next.createSerial === serial) begun.push(this.#next);
      else passedOver += 1;
      this.#next = null;
    }
  }

  /** Whether spans are left that begin after the last version. To be asked when that has gone by. */
  async hasMore(): Promise<boolean> {
    this.#next ??= (await this.#spans.next()).value ?? null;
    return this.#next !== null;
  }

  /** Lets go of the archive. */
  async close(): Promise<void> {
    await this.#spans.return();
  }
}

async function* readSpans(request: RestoreRequest): AsyncGenerator<ArchivedResource, void, void> {
  for await (const member of archiveMembers(request)) {
    if (member.kind === 'resource') yield member.resource;
    if (member.kind === 'version') return;
  }
}
