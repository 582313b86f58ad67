import { failure } from './endings.ts';
import type { Work } from './progress.ts';
import { isPassing, type Service } from './service.ts';

/** A file that goes to the service or comes from it. */
interface Transfer {
  readonly step: 'downloading' | 'sending';
  /** In bytes. */
  readonly size: number;
  /** A connection on which nothing moves for this long is given up, and the rest moves by another. */
  readonly stallMs: number;
  /** How many bytes are there already. */
  arrived(): Promise<number>;
  /** Moves the rest, for as long as the connection lasts. @returns how many bytes are there then. */
  attempt(connection: Connection): Promise<number>;
}

/** One attempt to move the rest. */
export interface Connection {
  /** How many bytes are there already. */
  readonly from: number;
  /** Asks for it. @throws KlError UNREACHABLE, also when nothing has moved for too long. */
  reach(url: string, request: RequestInit): Promise<Response>;
  /** To be told how many bytes are there whenever some have moved. */
  moved(bytes: number): void;
}

/**
 * Moves a file by as many connections as it takes. One that moves is not given up, however often it is cut: only an attempt that
 * moves no byte counts as a failure.
 *
 * @throws KlError when the service stays away, and what an attempt fails with that does not pass by.
 */
export async function transfer(
  service: Service,
  { step, size, stallMs, arrived, attempt }: Transfer,
  work: Work,
): Promise<void> {
  for (let there = -1; there < size; ) {
    there = await service.patiently(async () => {
      const from = await arrived();
      if (from === size) return from;
      const stall = new AbortController();
      let timer: NodeJS.Timeout | undefined;
      try {
        const now = await attempt({
          from,
          reach(url, request) {
            timer = setTimeout(() => stall.abort(new DOMException('stalled', 'TimeoutError')), stallMs);
            return service.reach(url, request, stall.signal);
          },
          moved(done) {
            timer?.refresh();
            work.show({ step, bytes: { done, total: size } });
          },
        });
        if (now > from) return now;
        throw failure('UNREACHABLE', 'The connection ended before a byte had moved.');
      } catch (error) {
        if (service.signal.aborted || !isPassing(error) || (await arrived()) <= from) throw error;
        return from;
      } finally {
        clearTimeout(timer);
      }
    });
  }
}
