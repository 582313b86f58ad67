import type { ArchivedResource } from '../archive/model.ts';
import { archiveMembers, type RestoreRequest } from './restore-request.ts';

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
      const span = await this.#peek();
      if (span === null || span.createSerial > serial) return { begun, passedOver };
      if (span.createSerial === serial) begun.push(span);
      else passedOver += 1;
      this.#next = null;
    }
  }

  /** Whether spans are left that begin after the last version. To be asked when that has gone by. */
  async hasMore(): Promise<boolean> {
    return (await this.#peek()) !== null;
  }

  /** Lets go of the archive. */
  async close(): Promise<void> {
    await this.#spans.return();
  }

  async #peek(): Promise<ArchivedResource | null> {
    this.#next ??= (await this.#spans.next()).value ?? null;
    return this.#next;
  }
}

async function* readSpans(request: RestoreRequest): AsyncGenerator<ArchivedResource, void, void> {
  for await (const member of archiveMembers(request)) {
    if (member.kind === 'resource') yield member.resource;
    if (member.kind === 'version') return;
  }
}
