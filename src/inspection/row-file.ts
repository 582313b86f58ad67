import { closeSync, createReadStream, openSync, writeSync } from 'node:fs';
import { ByteReader } from '../base/byte-reader.ts';

const PIECE_BYTES = 256 * 1024;
const LENGTH_BYTES = 4;
const NULL_LENGTH = 0xffff_ffff;

/** A row put aside: byte strings, some of which may be null. */
export type RowFields = readonly (Buffer | null)[];

/**
 * Writes rows of byte strings to a new file (mode 0600), to be read again in their order by {@link readRows}. Writing
 * blocks, and is for a thread that nobody waits for.
 */
export class RowFileWriter {
  readonly #file: number;
  #piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
  #used = 0;
  /** Bytes of the file before the piece. */
  #written = 0;

  /** @throws errors of the file system, such as EEXIST. */
  constructor(path: string) {
    this.#file = openSync(path, 'wx+', 0o600);
  }

  /** Adds a row; returns the position of its first field, for {@link overwrite}. */
  append(fields: readonly (Uint8Array | string | null)[]): number {
    const bytes = fields.map((field) => (typeof field === 'string' ? Buffer.from(field) : field));
    const length = bytes.reduce((sum, field) => sum + LENGTH_BYTES + (field?.length ?? 0), 0);
    this.#length(length);
    const first = this.#written + this.#used + LENGTH_BYTES;
    for (const field of bytes) {
      this.#length(field?.length ?? NULL_LENGTH);
      if (field !== null) this.#bytes(field);
    }
    return first;
  }

  /** Puts other bytes, as many as were there, where a field was written. */
  overwrite(position: number, bytes: Uint8Array): void {
    // A field that fits into the piece never lies on its border.
    if (position >= this.#written) this.#piece.set(bytes, position - this.#written);
    else writeSync(this.#file, bytes, 0, bytes.length, position);
  }

  /** Writes what is left. The file stays; it is the caller's to remove. */
  close(): void {
    try {
      this.#flush();
    } finally {
      closeSync(this.#file);
    }
  }

  #length(value: number): void {
    if (this.#used + LENGTH_BYTES > PIECE_BYTES) this.#flush();
    this.#used = this.#piece.writeUInt32BE(value, this.#used);
  }

  #bytes(bytes: Uint8Array): void {
    if (bytes.length > PIECE_BYTES - this.#used) this.#flush();
    if (bytes.length > PIECE_BYTES) this.#write(bytes);
    else {
      this.#piece.set(bytes, this.#used);
      this.#used += bytes.length;
    }
  }

  #flush(): void {
    this.#write(this.#piece.subarray(0, this.#used));
    this.#used = 0;
  }

  #write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      at += writeSync(this.#file, bytes, at, bytes.length - at, this.#written + at);
    }
    this.#written += bytes.length;
  }
}

/** The rows that a {@link RowFileWriter} wrote, in their order. Their fields are the caller's to keep. */
export async function* readRows(path: string): AsyncGenerator<RowFields, void, void> {
  const bytes = new ByteReader(createReadStream(path));
  try {
    for (;;) {
      const head = await bytes.exactly(LENGTH_BYTES);
      if (head.length === 0) return;
      yield fieldsOf(Buffer.from(await bytes.exactly(Buffer.from(head).readUInt32BE())));
    }
  } finally {
    await bytes.close();
  }
}

function fieldsOf(row: Buffer): RowFields {
  const fields: (Buffer | null)[] = [];
  for (let at = 0; at < row.length; ) {
    const length = row.readUInt32BE(at);
    at += LENGTH_BYTES;
    if (length === NULL_LENGTH) fields.push(null);
    else {
      fields.push(row.subarray(at, at + length));
      at += length;
    }
  }
  return fields;
}

/** No span ends at serial 0: it would have begun before. */
const LASTS = 0n;

/** The serial a span ends at, or null while it lasts, as a field of a length that does not change. */
export function endField(deleteSerial: bigint | null): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(deleteSerial ?? LASTS);
  return bytes;
}

/** What {@link endField} made a field of. */
export function endOf(field: RowFields[number] | undefined): bigint | null {
  const end = bytesOf(field).readBigInt64BE();
  return end === LASTS ? null : end;
}

/** The bytes of a field that is not null. */
export function bytesOf(field: RowFields[number] | undefined): Buffer {
  if (!field) throw new Error('A row that was put aside lacks a field.');
  return field;
}

/** A field that was put aside as text. */
export function textOf(field: RowFields[number] | undefined): string {
  return bytesOf(field).toString();
}
