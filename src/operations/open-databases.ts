import type { Kysely } from 'kysely';
import type { KilolockDatabase } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import type { ArchiveServices } from './services.ts';

/** Puts a question to each open database, and to the others when one cannot answer: none hinders another. */
export class OpenDatabases {
  readonly #databases: readonly KilolockDatabase[];
  readonly #failures = new Map<KilolockDatabase, unknown>();

  constructor({ openDatabases }: ArchiveServices['environments']) {
    this.#databases = openDatabases;
  }

  async ask(question: (db: Kysely<Database>, database: KilolockDatabase) => Promise<void>): Promise<void> {
    for (const database of this.#databases) {
      if (this.#failures.has(database)) continue;
      await question(database.for('housekeeping'), database).catch((error) =>
        this.#failures.set(database, error),
      );
    }
  }

  /** Whether all have answered so far. */
  get haveAnswered(): boolean {
    return this.#failures.size === 0;
  }

  /** @throws AggregateError unless all have answered. */
  end(): void {
    if (this.haveAnswered) return;
    const [cause] = this.#failures.values();
    throw new AggregateError([...this.#failures.values()], 'Not every database could be asked.', { cause });
  }
}
