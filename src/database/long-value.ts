import pg from 'pg';
import type { DatabaseSession } from './connection.ts';

/** What is handed to the socket at a time. */
const PIECE_BYTES = 256 * 1024;

/** A row as PostgreSQL prints it. */
export type PrintedRow = readonly (string | null)[];

const AS_PRINTED = { getTypeParser: () => (value: string) => value };

/**
 * Runs a statement that takes one bytea as `$1`. The value goes out piece by piece: pg would gather it twice more, and hold up
 * everybody else meanwhile, for a quarter of a second with 256 MB.
 *
 * @param value below 1 GiB, as every value of PostgreSQL.
 * @param take is given each row as it comes.
 */
export async function askWithLongValue(
  session: DatabaseSession,
  text: string,
  value: Uint8Array,
  take: (row: PrintedRow) => void,
): Promise<void> {
  const query = new LongValueQuery(text, value);
  const ended = new Promise<void>((resolve, reject) => {
    query.on('row', take).once('end', resolve).once('error', reject);
  });
  session.client.query(query);
  await session.answered(ended);
}

class LongValueQuery extends pg.Query<string[]> {
  readonly #text: string;
  readonly #value: Uint8Array;

  constructor(text: string, value: Uint8Array) {
    const config: pg.QueryArrayConfig = { text, rowMode: 'array', types: AS_PRINTED };
    super(config);
    this.#text = text;
    this.#value = value;
  }

  override submit = (connection: pg.Connection): void => {
    connection.parse({ name: '', text: this.#text, types: [] }, true);
    void this.#bind(connection.stream).then((isSent) => {
      // Everybody who waits for an answer is told when the connection is lost.
      if (!isSent) return;
      connection.describe({ type: 'P', name: '' }, true);
      connection.execute({ portal: '', rows: '' }, true);
      connection.sync();
    });
  };

  async #bind(stream: pg.Connection['stream']): Promise<boolean> {
    const write = (bytes: Uint8Array) =>
      new Promise<boolean>((resolve) => stream.write(bytes, (error) => resolve(!error)));
    const value = this.#value;
    if (!(await write(headOfBind(value.length)))) return false;
    for (let at = 0; at < value.length; at += PIECE_BYTES) {
      if (!(await write(value.subarray(at, at + PIECE_BYTES)))) return false;
    }
    return write(END_OF_BIND);
  }
}

/** PostgreSQL manual, "Message Formats", Bind: of the unnamed statement, to the unnamed portal, up to the one value. */
function headOfBind(byteLength: number): Buffer {
  const head = Buffer.alloc(1 + 4 + 2 + 2 + 2 + 2 + 4);
  head.write('B', 0, 'latin1');
  head.writeInt32BE(head.length - 1 + byteLength + END_OF_BIND.length, 1);
  // Behind two empty names: one format, which is binary, and one value.
  head.writeInt16BE(1, 7);
  head.writeInt16BE(1, 9);
  head.writeInt16BE(1, 11);
  head.writeInt32BE(byteLength, 13);
  return head;
}

/** No format for the columns of the answer: they come as text. */
const END_OF_BIND = Buffer.from([0, 0]);
