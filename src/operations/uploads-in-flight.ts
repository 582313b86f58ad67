import { RequestRefusedError } from './user-error.ts';

/** The files that callers are sending to this process, a bounded number for each of them. */
export class UploadsInFlight {
  readonly #maximum: number;
  readonly #bySubject = new Map<string, number>();

  constructor(maximum: number) {
    this.#maximum = maximum;
  }

  /**
   * Receives a file, unless its sender is sending as many as one may.
   *
   * @throws RequestRefusedError TOO_MANY_OPERATIONS.
   */
  async receive<File>(subject: string, work: () => Promise<File>): Promise<File> {
    const inFlight = this.#bySubject.get(subject) ?? 0;
    if (inFlight >= this.#maximum) {
      throw new RequestRefusedError(
        'TOO_MANY_OPERATIONS',
        `You are sending ${inFlight} files at this moment, as many as one may. Send this one when another has arrived.`,
        ['file'],
      );
    }
    this.#bySubject.set(subject, inFlight + 1);
    try {
      return await work();
    } finally {
      const left = (this.#bySubject.get(subject) ?? 1) - 1;
      if (left === 0) this.#bySubject.delete(subject);
      else this.#bySubject.set(subject, left);
    }
  }
}
