import { hash } from 'node:crypto';

const HASH_BYTES = 32;
const HASH_WORDS = HASH_BYTES / Int32Array.BYTES_PER_ELEMENT;
/** A row: the SHA-256 of an address, and the hash of the content that stands there. */
const ROW_BYTES = 2 * HASH_BYTES;
const ROW_WORDS = 2 * HASH_WORDS;
const FREE = -1;

/**
 * The resources of one version by address, as far as versions are compared: fixed lengths outside the JavaScript heap, and
 * nothing that keeps a document alive. Its rows are those of the document's index. Of several with one address the last
 * counts, so that a deposed object hides the current one, as it does in Kilolock (data model 3.1).
 */
export class ResourceTable {
  /** Holds an address that is looked for. */
  static readonly #wanted = new ResourceTable(1);
  readonly #words: Int32Array;
  readonly #bytes: Buffer;
  /** 1 for the rows that count. */
  readonly #counts: Uint8Array;
  /** The rows that count, from where the first word of their address leads. */
  readonly #slots: Int32Array;
  #size = 0;

  /** @param length how many rows the index has. */
  constructor(length: number) {
    this.#words = new Int32Array(length * ROW_WORDS);
    this.#bytes = Buffer.from(this.#words.buffer);
    this.#counts = new Uint8Array(length);
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * length + 1))).fill(FREE);
  }

  /** How many rows the index has. */
  get length(): number {
    return this.#counts.length;
  }

  /** How many resources there are. */
  get size(): number {
    return this.#size;
  }

  /** Adds an instance, in the order of the document. @param contentHash its hash, a character of latin1 a byte. */
  add(row: number, address: string, contentHash: string): void {
    this.#setAddress(row, address);
    this.#bytes.write(contentHash, row * ROW_BYTES + HASH_BYTES, 'latin1');
    this.#count(row);
  }

  /** Adds an instance, in the order of the document, that stood with the same address and content in a row of `other`. */
  copy(row: number, other: ResourceTable, otherRow: number): void {
    other.#bytes.copy(this.#bytes, row * ROW_BYTES, otherRow * ROW_BYTES, (otherRow + 1) * ROW_BYTES);
    this.#count(row);
  }

  /** The row that counts for the address of a row of `other`; -1 when there is none. */
  find(other: ResourceTable, row: number): number {
    return this.#slots[this.#slotOf(other, row)] ?? FREE;
  }

  /** The row that counts for an address; -1 when there is none. */
  findAddress(address: string): number {
    ResourceTable.#wanted.#setAddress(0, address);
    return this.find(ResourceTable.#wanted, 0);
  }

  /** The row that counts for the address of a row of `other`, if it has the same content, too; -1 when there is none. */
  findSame(other: ResourceTable, otherRow: number): number {
    const row = this.find(other, otherRow);
    const isSame =
      row !== FREE && this.#isSame(row * ROW_WORDS + HASH_WORDS, other, otherRow * ROW_WORDS + HASH_WORDS);
    return isSame ? row : FREE;
  }

  /** The hash of the content of a row: lowercase hex. */
  contentHash(row: number): string {
    return this.#bytes.toString('hex', row * ROW_BYTES + HASH_BYTES, (row + 1) * ROW_BYTES);
  }

  /** Whether a row counts. */
  counts(row: number): boolean {
    return this.#counts[row] === 1;
  }

  /** The rows that count, in their order. */
  *rows(): Generator<number, void, void> {
    for (let row = 0; row < this.length; row++) if (this.#counts[row] === 1) yield row;
  }

  #setAddress(row: number, address: string): void {
    this.#bytes.write(hash('sha256', address, 'binary'), row * ROW_BYTES, 'latin1');
  }

  #count(row: number): void {
    const slot = this.#slotOf(this, row);
    const hidden = this.#slots[slot] ?? FREE;
    if (hidden === FREE) this.#size += 1;
    else this.#counts[hidden] = 0;
    this.#slots[slot] = row;
    this.#counts[row] = 1;
  }

  /** Where the address of a row of `other` stands, or would. */
  #slotOf(other: ResourceTable, row: number): number {
    const mask = this.#slots.length - 1;
    let slot = (other.#words[row * ROW_WORDS] ?? 0) & mask;
    for (;;) {
      const found = this.#slots[slot] ?? FREE;
      if (found === FREE || this.#isSame(found * ROW_WORDS, other, row * ROW_WORDS)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #isSame(at: number, other: ResourceTable, otherAt: number): boolean {
    for (let i = 0; i < HASH_WORDS; i++) {
      if (this.#words[at + i] !== other.#words[otherAt + i]) return false;
    }
    return true;
  }
}
