import type { KilolockDatabase } from '../../src/database/connection.ts';

/** The secret that the Terraform documents of the fixtures hold: it belongs in raw states and archives, and nowhere else. */
const FIXTURE_SECRET = 'hunter2-not-real';

/** What must not be in any log, answer or record of a test run: the fixtures' secret, and the tokens and links made. */
export class PlantedSecrets {
  readonly #secrets = new Set([FIXTURE_SECRET]);

  /** Adds a token that was made for a test. */
  add(secret: string): string {
    this.#secrets.add(secret);
    return secret;
  }

  /** Takes the answer to a query: notes the links in it, and refuses the fixtures' secret where no raw state was asked for. */
  checkAnswer(query: string, answer: string): void {
    for (const [, link = ''] of answer.matchAll(/\/archives\/[^"?]+\?token=([\w.-]+)/g))
      this.#secrets.add(link);
    if (!query.includes('rawState') && answer.includes(FIXTURE_SECRET)) {
      throw new Error(`An answer holds the fixtures' secret: ${query}`);
    }
  }

  /** @throws Error when one of them stands in a text. */
  checkText(what: string, text: string): void {
    for (const secret of this.#secrets) {
      if (text.includes(secret))
        throw new Error(`${what} holds the secret that begins with ${secret.slice(0, 12)}`);
    }
  }

  /** @throws Error when one of them stands in an event or in the record of an operation. */
  async checkRecords({ pool }: KilolockDatabase): Promise<void> {
    const { rows } = await pool.query<{ record: string }>(
      'select event::text as record from events event union all select op::text from state_archive.operation op',
    );
    for (const { record } of rows) this.checkText('A record', record);
  }
}
