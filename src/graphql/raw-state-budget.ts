import type { Kysely } from 'kysely';
import { Turns } from '../base/turns.ts';
import type { Database } from '../database/types.ts';
import { readRawState } from '../history/versions.ts';
import { badUserInput } from './connection.ts';

/** The most bytes of raw states that one request gives out: an answer is held in memory whole. */
const MAX_RAW_STATE_BYTES = 64 * 1024 * 1024;

/** A raw state that was read once, and is given out as often as the request asks for it. */
interface ReadRawState {
  /** @throws GraphQLError BAD_USER_INPUT when the request was given too much already. */
  take(): string;
}

/** One reading at a time: each may use what the one before left. */
const readings = new Turns<RawStateBudget>();

/**
 * What one request may still be given of raw states, in whatever environment, under whatever alias: bytes are counted as
 * often as they stand in the answer.
 */
export class RawStateBudget {
  readonly #most: number;
  #left: number;

  constructor(maxBytes: number = MAX_RAW_STATE_BYTES) {
    this.#most = maxBytes;
    this.#left = maxBytes;
  }

  /**
   * @returns null for a version that is gone.
   * @throws GraphQLError BAD_USER_INPUT when the raw state is larger than what is left.
   */
  read(db: Kysely<Database>, versionId: string): Promise<ReadRawState | null> {
    return readings.run(this, async () => {
      const found = await readRawState(db, versionId, this.#left);
      if (found === null) return null;
      const { byteLength, text } = found;
      if (text === null) throw this.#tooMuch();
      this.#spend(byteLength);
      let isFirst = true;
      return {
        take: () => {
          if (!isFirst) this.#spend(byteLength);
          isFirst = false;
          return text;
        },
      };
    });
  }

  #spend(bytes: number): void {
    if (bytes > this.#left) throw this.#tooMuch();
    this.#left -= bytes;
  }

  #tooMuch() {
    return badUserInput(
      `One request gives out ${this.#most} bytes of raw states at most; ask for fewer, or export the state instead.`,
    );
  }
}
