import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { ByteReader } from '../base/byte-reader.ts';
import { isInt64 } from '../base/int64.ts';
import { letGo } from '../base/let-go.ts';
import { isUtcTime } from '../base/time.ts';
import { isUuid } from '../base/uuid.ts';
import type { DatabaseSession } from './connection.ts';

/** One row of {@link copyTextRows}: a key, and a text whose length in bytes is known before its bytes. */
interface StreamedRow {
  readonly key: string;
  /** Length of `content` in bytes. */
  readonly byteLength: number;
  /**
   * The UTF-8 of the second column. Read it once, before the next row is asked for, and each piece before the next piece is; what
   * is left unread is skipped.
   */
  readonly content: AsyncIterable<Uint8Array>;
}

/** The column types {@link copyIntoTable} can write. */
type CopyColumnType = 'uuid' | 'text' | 'bigint' | 'integer' | 'boolean' | 'jsonb' | 'timestamptz';

/** A text or jsonb value whose bytes come later: exactly `byteLength` of them, valid UTF-8. */
export interface StreamedValue {
  readonly byteLength: number;
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * One value for {@link copyIntoTable}. By column type: uuid, a string; text and jsonb, a string, its UTF-8, or a
 * {@link StreamedValue}; bigint, a bigint or a decimal string; integer, a number; boolean, a boolean; timestamptz, RFC 3339
 * text with six fractional digits in UTC. NULL is null.
 */
export type CopyValue = string | Uint8Array | bigint | number | boolean | null | StreamedValue;

/** A column that {@link copyIntoTable} writes, and what a row has for it. */
export type CopyColumn<Row> = readonly [name: string, type: CopyColumnType, pick: (row: Row) => CopyValue];

/** What came over a COPY stream, or was to be sent over one, is not what was promised. */
export class CopyError extends Error {
  override readonly name = 'CopyError';
}

// PostgreSQL manual, COPY, "Binary Format".
const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');
const TRAILER = -1;
const NULL_LENGTH = -1;
/** What stands in front of the text of a jsonb: the version of its form. */
const JSONB_VERSION = Buffer.of(1);
const EMPTY = Buffer.of();
/** One field of a tuple is below 1 GiB (PostgreSQL, MaxAllocSize). */
const MAX_FIELD_BYTES = 0x3fffffff;

/** As bytes, two pieces that wait would be copied into a third, and nobody knew when those are used up. */
const PIECE_BY_PIECE = { objectMode: true, highWaterMark: 1 };

/**
 * Runs `query`, a SELECT of two text columns, through `COPY (…) TO STDOUT (FORMAT binary)`, and yields its rows without
 * holding any value whole: a row of any size streams.
 *
 * COPY takes no parameters: literals in `query` must be escaped already. Neither column may be NULL. Until the last row has
 * been taken the session can run nothing else: a query on it waits for that, for ever if the loop over the rows awaits it.
 *
 * A consumer that stops early, by `break` or by throwing, discards the session: the rest of the stream could be
 * gigabytes, and the connection can carry nothing else until it is over.
 *
 * @throws CopyError when the query yields other than two non-NULL columns. Errors of PostgreSQL are thrown as they are,
 *   with their `code`, and leave the connection usable.
 */
export async function* copyTextRows(
  session: DatabaseSession,
  query: string,
): AsyncGenerator<StreamedRow, void> {
  const stream = session.client.query(copyTo(`COPY (${query}) TO STDOUT (FORMAT binary)`, PIECE_BY_PIECE));
  /** Whether the stream itself has ended: by the server, or the connection, or where it should. */
  let over = false;
  // The iterator throws this error, too; but one that comes after the iterator has gone would end the process.
  stream.on('error', () => {
    over = true;
  });
  const reader = new ByteReader(piecesOf(stream, session));
  try {
    const signature = whole(await reader.exactly(SIGNATURE.length), SIGNATURE.length);
    if (!signature.equals(SIGNATURE))
      throw new CopyError('PostgreSQL did not answer COPY in its binary format.');
    await reader.exactly(4); // flags
    await reader.exactly(whole(await reader.exactly(4), 4).readInt32BE());

    for (;;) {
      const columns = whole(await reader.exactly(2), 2).readInt16BE();
      if (columns === TRAILER) break;
      if (columns !== 2) throw new CopyError(`COPY was to yield two columns and yields ${columns}.`);
      const keyLength = whole(await reader.exactly(4), 4).readInt32BE();
      if (keyLength === NULL_LENGTH) throw new CopyError('COPY yields NULL in its first column, the key.');
      const key = whole(await reader.exactly(keyLength), keyLength).toString('utf8');
      const byteLength = whole(await reader.exactly(4), 4).readInt32BE();
      if (byteLength === NULL_LENGTH)
        throw new CopyError(`COPY yields NULL in its second column, for the key ${key}.`);

      let left = byteLength;
      const next = async (): Promise<Uint8Array> => {
        const bytes = (await reader.some(left)) ?? cutOff();
        left -= bytes.length;
        return bytes;
      };
      const content = {
        async *[Symbol.asyncIterator]() {
          while (left > 0) yield await next();
        },
      };
      yield { key, byteLength, content };
      while (left > 0) await next();
    }
    if ((await reader.some(1)) !== null)
      throw new CopyError('The COPY stream of PostgreSQL goes on after its trailer.');
    over = true;
  } finally {
    if (!over) session.discard(new CopyError('A COPY was left before its end.'));
  }
}

async function* piecesOf(stream: Readable, session: DatabaseSession): AsyncGenerator<Uint8Array, void> {
  const pieces: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await session.answered(pieces.next());
    if (done) return;
    yield value;
    letGo(value);
  }
}

/** So many bytes of a COPY as they were asked for. @throws CopyError when the stream has ended before. */
function whole(bytes: Uint8Array, length: number): Buffer {
  if (bytes.length < length) cutOff();
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes);
}

function cutOff(): never {
  throw new CopyError('The COPY stream of PostgreSQL ended in the middle of a row.');
}

/**
 * Copies rows into a table through `COPY … FROM STDIN (FORMAT binary)`, and returns how many. Values are sent as they
 * come; none is held whole.
 *
 * `table` and the column names are quoted here; the table is named with its schema: `state_archive.version_mapping`. `rows` must
 * not query the session it is copied through: that query would wait for the end of the COPY.
 *
 * When `rows` throws, or a streamed value is shorter or longer than its `byteLength`, the COPY fails as a whole and that
 * error is thrown. Errors of PostgreSQL are thrown as they are, with their `code`. In each case the connection stays
 * usable (a transaction it is in has failed).
 *
 * @throws CopyError when a value does not fit the type of its column.
 *
 * @example
 * ```ts
 * await copyIntoTable(session, 'public.state_versions', [
 *   ['id', 'uuid', ({ id }) => id],
 *   ['raw_state', 'jsonb', ({ byteLength, content }) => ({ byteLength, content })],
 * ], versions)
 * ```
 */
export async function copyIntoTable<Row>(
  session: DatabaseSession,
  table: string,
  columns: readonly CopyColumn<Row>[],
  rows: AsyncIterable<Row> | Iterable<Row>,
): Promise<number> {
  const { client } = session;
  const target = table
    .split('.')
    .map((part) => client.escapeIdentifier(part))
    .join('.');
  const names = columns.map(([name]) => client.escapeIdentifier(name)).join(', ');
  const stream = client.query(copyFrom(`COPY ${target} (${names}) FROM STDIN (FORMAT binary)`));

  let serverError: Error | undefined;
  let failWrite: (error: Error) => void = () => {};
  stream.on('error', (error) => {
    serverError ??= error;
    failWrite(error);
  });
  // One write at a time, each awaited: that is the back-pressure, and pg-copy-streams loses its footing when the server
  // fails while it still has several writes queued.
  const send = (block: Buffer): Promise<void> =>
    session.answered(
      new Promise<void>((resolve, reject) => {
        failWrite = reject;
        if (serverError === undefined) stream.write(block, () => resolve());
        else reject(serverError);
      }),
    );

  const writer = new BlockWriter(send);
  try {
    writer.bytes(SIGNATURE);
    writer.int32(0); // flags
    writer.int32(0); // header extension
    for await (const row of rows) {
      writer.int16(columns.length);
      for (const [name, type, pick] of columns) {
        const streaming = writeField(writer, type, pick(row), `${table}.${name}`);
        if (streaming) await streaming;
      }
      if (writer.hasFullBlocks) await writer.sendFullBlocks();
    }
    writer.int16(TRAILER);
    await writer.finish();
  } catch (error) {
    if (serverError === undefined) {
      // CopyFail: the server drops what it got. Its answer, an error quoting this text, is not the cause.
      stream.destroy(new Error('the rows to copy could not be read'));
      await session.answered(once(stream, 'close')).catch(() => {});
      throw error;
    }
    return session.answered(Promise.reject(serverError));
  }
  stream.end();
  await session.answered(once(stream, 'finish'));
  return stream.rowCount;
}

const BLOCK_BYTES = 64 * 1024;

/**
 * Gathers bytes into blocks, so that small values cost neither a message nor a turn of the event loop each. Copies what it
 * is given: a caller may reuse its buffers.
 */
class BlockWriter {
  readonly #send: (block: Buffer) => Promise<void>;
  readonly #full: Buffer[] = [];
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #used = 0;

  constructor(send: (block: Buffer) => Promise<void>) {
    this.#send = send;
  }

  bytes(bytes: Uint8Array): void {
    let rest = bytes;
    for (let room = BLOCK_BYTES - this.#used; rest.length > room; room = BLOCK_BYTES) {
      this.#block.set(rest.subarray(0, room), this.#used);
      this.#used = BLOCK_BYTES;
      this.#makeRoom(1);
      rest = rest.subarray(room);
    }
    this.#block.set(rest, this.#used);
    this.#used += rest.length;
  }

  int16(value: number): void {
    this.#makeRoom(2);
    this.#used = this.#block.writeInt16BE(value, this.#used);
  }

  int32(value: number): void {
    this.#makeRoom(4);
    this.#used = this.#block.writeInt32BE(value, this.#used);
  }

  get hasFullBlocks(): boolean {
    return this.#full.length > 0;
  }

  async sendFullBlocks(): Promise<void> {
    for (const block of this.#full.splice(0)) await this.#send(block);
  }

  async finish(): Promise<void> {
    this.#makeRoom(BLOCK_BYTES);
    await this.sendFullBlocks();
  }

  #makeRoom(length: number): void {
    if (this.#used + length <= BLOCK_BYTES) return;
    this.#full.push(this.#block.subarray(0, this.#used));
    this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#used = 0;
  }
}

/** Writes one value; a promise only for a value whose bytes are still to come. */
function writeField(
  writer: BlockWriter,
  type: CopyColumnType,
  value: CopyValue,
  column: string,
): Promise<void> | undefined {
  if (value === null) {
    writer.int32(NULL_LENGTH);
    return undefined;
  }
  const [wanted, encode] = ENCODINGS[type];
  const encoded = encode(value);
  if (encoded === null) throw new CopyError(`A value for ${column} is not ${wanted}.`);
  const prefix = type === 'jsonb' ? JSONB_VERSION : EMPTY;
  const { byteLength } = encoded;
  if (!Number.isInteger(byteLength) || byteLength < 0 || byteLength > MAX_FIELD_BYTES - prefix.length)
    throw new CopyError(
      `A value for ${column} has ${byteLength} bytes; PostgreSQL takes up to ${MAX_FIELD_BYTES}.`,
    );
  writer.int32(prefix.length + byteLength);
  writer.bytes(prefix);
  if (!(encoded instanceof Uint8Array)) return writeContent(writer, encoded, column);
  writer.bytes(encoded);
  return undefined;
}

async function writeContent(
  writer: BlockWriter,
  { byteLength, content }: StreamedValue,
  column: string,
): Promise<void> {
  let sent = 0;
  for await (const chunk of content) {
    sent += chunk.length;
    if (sent > byteLength)
      throw new CopyError(`A value for ${column} is longer than its ${byteLength} bytes.`);
    writer.bytes(chunk);
    if (writer.hasFullBlocks) await writer.sendFullBlocks();
  }
  if (sent < byteLength)
    throw new CopyError(`A value for ${column} ended after ${sent} of its ${byteLength} bytes.`);
}

/** What a value has to be, and how it becomes PostgreSQL's binary form: null where it is something else. */
type Encoding = readonly [
  wanted: string,
  encode: (value: Exclude<CopyValue, null>) => Uint8Array | StreamedValue | null,
];

const TEXT: Encoding = [
  'text in well-formed Unicode',
  (value) => {
    if (typeof value === 'object') return value;
    // Encoding a lone surrogate would silently write another character in its place.
    return typeof value === 'string' && value.isWellFormed() ? Buffer.from(value, 'utf8') : null;
  },
];

const ENCODINGS: Readonly<Record<CopyColumnType, Encoding>> = {
  text: TEXT,
  jsonb: TEXT,
  uuid: [
    'a UUID with dashes',
    (value) =>
      typeof value === 'string' && isUuid(value) ? Buffer.from(value.replaceAll('-', ''), 'hex') : null,
  ],
  bigint: [
    'a 64-bit integer',
    (value) => {
      if (typeof value !== 'bigint' && !(typeof value === 'string' && /^-?\d+$/.test(value))) return null;
      const number = BigInt(value);
      return isInt64(number) ? int64(number) : null;
    },
  ],
  integer: [
    'a 32-bit integer',
    (value) => {
      if (typeof value !== 'number' || (value | 0) !== value) return null;
      const bytes = Buffer.allocUnsafe(4);
      bytes.writeInt32BE(value);
      return bytes;
    },
  ],
  boolean: ['a boolean', (value) => (typeof value === 'boolean' ? Buffer.of(value ? 1 : 0) : null)],
  timestamptz: [
    'an RFC 3339 time in UTC with six fractional digits',
    (value) => (typeof value === 'string' && isUtcTime(value) ? int64(microsecondsSince2000(value)) : null),
  ],
};

const EPOCH_2000_MS = BigInt(Date.UTC(2000, 0, 1));

/** What a timestamptz is: microseconds since 2000-01-01T00:00:00Z. */
function microsecondsSince2000(time: string): bigint {
  const milliseconds = Date.parse(`${time.slice(0, 'YYYY-MM-DDThh:mm:ss'.length)}Z`);
  return (BigInt(milliseconds) - EPOCH_2000_MS) * 1000n + BigInt(time.slice(-7, -1));
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}
