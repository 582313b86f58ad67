import { once } from 'node:events';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { ByteReader } from '../base/byte-reader.ts';
import { isInt64 } from '../base/int64.ts';
import { letGo } from '../base/let-go.ts';
import { isUtcTime } from '../base/time.ts';
import { isUuid } from '../base/uuid.ts';
import type { DatabaseSession } from './connection.ts';

/** One row of {@link copyTextRows}: a key, and a text whose length in bytes is known before its bytes. */
export interface StreamedRow {
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
export type CopyColumnType = 'uuid' | 'text' | 'bigint' | 'integer' | 'boolean' | 'jsonb' | 'timestamptz';

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
const JSONB_VERSION = 1;
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
  // The iterator below throws this error; but one that comes after the iterator has gone would end the process.
  stream.on('error', () => {});
  const chunks = stream[Symbol.asyncIterator]();
  /** Whether the stream itself has ended: by the server, or the connection, or where it should. */
  let over = false;
  let chunk = new Uint8Array(0);
  const reader = new ByteReader({
    [Symbol.asyncIterator]: () => ({
      async next() {
        letGo(chunk);
        try {
          const next = await session.answered(chunks.next());
          if (next.done !== true) chunk = next.value;
          return next;
        } catch (error) {
          over = true;
          throw error;
        }
      },
    }),
  });
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
  const failed = new Promise<never>((_, reject) => {
    stream.on('error', (error) => {
      serverError ??= error;
      failWrite(error);
      reject(error);
    });
  });
  // Awaited only where it is raced; it may also reject while nobody waits.
  failed.catch(() => {});

  // One write at a time, each awaited: that is the back-pressure, and pg-copy-streams loses its footing when the server
  // fails while it still has several writes queued.
  const send = (block: Buffer): Promise<void> => {
    if (serverError) return session.answered(failed);
    // A promise for each write: racing all of them against the one of the whole COPY would keep every one until its end.
    const written = new Promise<void>((resolve, reject) => {
      failWrite = reject;
      stream.write(block, () => resolve());
    });
    return session.answered(written);
  };

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
      await session.answered(failed).catch(() => {});
      throw error;
    }
    return session.answered(failed);
  }
  stream.end();
  await session.answered(Promise.race([once(stream, 'finish'), failed]));
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
    for (let taken = 0; taken < bytes.length; ) {
      this.#makeRoom(1);
      const part = bytes.subarray(taken, taken + BLOCK_BYTES - this.#used);
      this.#block.set(part, this.#used);
      this.#used += part.length;
      taken += part.length;
    }
  }

  byte(value: number): void {
    this.#makeRoom(1);
    this.#used = this.#block.writeUInt8(value, this.#used);
  }

  int16(value: number): void {
    this.#makeRoom(2);
    this.#used = this.#block.writeInt16BE(value, this.#used);
  }

  int32(value: number): void {
    this.#makeRoom(4);
    this.#used = this.#block.writeInt32BE(value, this.#used);
  }

  int64(value: bigint): void {
    this.#makeRoom(8);
    this.#used = this.#block.writeBigInt64BE(value, this.#used);
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
  switch (type) {
    case 'uuid': {
      const bytes = uuidBytes(value, column);
      writer.int32(bytes.length);
      writer.bytes(bytes);
      return undefined;
    }
    case 'bigint':
      writer.int32(8);
      writer.int64(bigIntOf(value, column));
      return undefined;
    case 'integer':
      writer.int32(4);
      writer.int32(integerOf(value, column));
      return undefined;
    case 'boolean':
      if (typeof value !== 'boolean') throw unfit(column, 'a boolean');
      writer.int32(1);
      writer.byte(value ? 1 : 0);
      return undefined;
    case 'timestamptz':
      writer.int32(8);
      writer.int64(microsecondsSince2000(value, column));
      return undefined;
    case 'text':
    case 'jsonb': {
      const { byteLength, content } = textOf(value, column);
      const prefix = type === 'jsonb' ? 1 : 0;
      if (!Number.isInteger(byteLength) || byteLength < 0 || byteLength > MAX_FIELD_BYTES - prefix)
        throw new CopyError(
          `A value for ${column} has ${byteLength} bytes; PostgreSQL takes up to ${MAX_FIELD_BYTES}.`,
        );
      writer.int32(prefix + byteLength);
      if (type === 'jsonb') writer.byte(JSONB_VERSION);
      if (!(content instanceof Uint8Array)) return writeContent(writer, byteLength, content, column);
      writer.bytes(content);
      return undefined;
    }
  }
}

async function writeContent(
  writer: BlockWriter,
  byteLength: number,
  content: AsyncIterable<Uint8Array>,
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

function textOf(
  value: Exclude<CopyValue, null>,
  column: string,
): { byteLength: number; content: Uint8Array | AsyncIterable<Uint8Array> } {
  if (value instanceof Uint8Array) return { byteLength: value.length, content: value };
  if (typeof value === 'object') return value;
  // Encoding a lone surrogate would silently write another character in its place.
  if (typeof value !== 'string' || !value.isWellFormed()) throw unfit(column, 'text in well-formed Unicode');
  const content = Buffer.from(value, 'utf8');
  return { byteLength: content.length, content };
}

function uuidBytes(value: CopyValue, column: string): Uint8Array {
  if (typeof value !== 'string' || !isUuid(value)) throw unfit(column, 'a UUID with dashes');
  return Buffer.from(value.replaceAll('-', ''), 'hex');
}

function bigIntOf(value: CopyValue, column: string): bigint {
  const number =
    typeof value === 'bigint'
      ? value
      : typeof value === 'string' && /^-?\d+$/.test(value)
        ? BigInt(value)
        : undefined;
  if (number === undefined || !isInt64(number)) throw unfit(column, 'a 64-bit integer');
  return number;
}

function integerOf(value: CopyValue, column: string): number {
  if (typeof value !== 'number' || (value | 0) !== value) throw unfit(column, 'a 32-bit integer');
  return value;
}

const EPOCH_2000_MS = BigInt(Date.UTC(2000, 0, 1));

/** PostgreSQL's timestamptz in binary: microseconds since 2000-01-01T00:00:00Z. */
function microsecondsSince2000(value: CopyValue, column: string): bigint {
  if (typeof value !== 'string' || !isUtcTime(value))
    throw unfit(column, 'an RFC 3339 time in UTC with six fractional digits');
  const milliseconds = Date.parse(`${value.slice(0, 'YYYY-MM-DDThh:mm:ss'.length)}Z`);
  return (BigInt(milliseconds) - EPOCH_2000_MS) * 1000n + BigInt(value.slice(-7, -1));
}

function unfit(column: string, wanted: string): CopyError {
  return new CopyError(`A value for ${column} is not ${wanted}.`);
}
