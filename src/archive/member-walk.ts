import { createHash, type Hash } from 'node:crypto';
import { ByteReader } from '../base/byte-reader.ts';
import { present } from '../base/invariant.ts';
import { readInto } from '../base/read-into.ts';
import { ArchiveError, quoted } from './errors.ts';
import { isMemberName } from './format.ts';
import { type TarEntry, tarEntries } from './tar.ts';

const NEWLINE = 0x0a;

/** A member that has been read to its end. */
export interface ReadMember {
  name: string;
  sha256: string;
}

/**
 * Walks the members of an archive in the one order they may stand in, and digests each on the way. Take a member
 * with {@link take}, read it, and {@link finish} it before the next.
 */
export class MemberWalk {
  readonly #entries: AsyncGenerator<TarEntry, void, void>;
  /** The member that comes next, looked at but not taken; undefined before it has been looked at. */
  #next: TarEntry | null | undefined;
  #open: { entry: TarEntry; hash: Hash } | null = null;
  /** Members read to their ends so far, in order. */
  readonly finished: ReadMember[] = [];

  constructor(tar: AsyncIterable<Uint8Array>) {
    this.#entries = tarEntries(new ByteReader(tar));
  }

  /** The member that is being read, or null between members. */
  get reading(): string | null {
    return this.#open?.entry.name ?? null;
  }

  /** Whether the next member has this name. */
  async isNext(name: string): Promise<boolean> {
    return (await this.#peek())?.name === name;
  }

  /**
   * Takes the next member, which must have this name, and gives its size.
   *
   * @throws ArchiveError ARCHIVE_TRUNCATED when the archive has no more members; ARCHIVE_UNSAFE for a member the
   *   format does not know or that was there before; ARCHIVE_INCONSISTENT for one out of its place;
   *   ARCHIVE_TOO_LARGE when it has more than `limit` bytes.
   */
  async take(name: string, limit: number): Promise<number> {
    const entry = await this.#peek();
    if (entry === null) {
      throw new ArchiveError('ARCHIVE_TRUNCATED', `the archive ends before ${name}`, name);
    }
    if (entry.name !== name) throw this.#misplaced(entry.name, name);
    if (entry.size > limit) {
      throw new ArchiveError(
        'ARCHIVE_TOO_LARGE',
        `${name} has ${entry.size} bytes; the limit is ${limit}`,
        name,
      );
    }
    this.#next = undefined;
    this.#open = { entry, hash: createHash('sha256') };
    return entry.size;
  }

  /** @throws ArchiveError when anything but the end of the archive comes next. */
  async expectEnd(): Promise<void> {
    const entry = await this.#peek();
    if (entry !== null) throw this.#misplaced(entry.name, 'the end of the archive');
  }

  /** The taken member's next bytes, which are there until more is asked for; null when it is complete. */
  async read(): Promise<Uint8Array | null> {
    if (this.#open === null) return null;
    const { entry, hash } = this.#open;
    const piece = await entry.read();
    if (piece !== null) hash.update(piece);
    else {
      this.#open = null;
      this.finished.push({ name: entry.name, sha256: hash.digest('hex') });
    }
    return piece;
  }

  /** Skips what is left of the taken member, digesting it all the same. */
  async finish(): Promise<ReadMember> {
    while ((await this.read()) !== null);
    return present(this.finished.at(-1), 'a member has been taken');
  }

  /** The whole of the taken member. */
  async readAll(): Promise<Uint8Array> {
    const all = Buffer.allocUnsafe(this.#open?.entry.size ?? 0);
    await readInto(all, this.content());
    return all;
  }

  /** The bytes of the taken member, for one reader, until the member is finished. */
  content(): AsyncGenerator<Uint8Array, void, void> {
    return this.#contentOf(this.#open);
  }

  /** What `read` makes of the lines of the taken member: it is given each without its newline, and its number, from 1. */
  async *lines<T>(
    limit: number,
    read: (line: Uint8Array, number: number) => T,
  ): AsyncGenerator<T, void, void> {
    const name = this.#open?.entry.name ?? null;
    let begun: Uint8Array[] = [];
    let length = 0;
    let number = 0;
    const add = (piece: Uint8Array) => {
      begun.push(piece);
      length += piece.length;
      if (length > limit) {
        throw new ArchiveError('ARCHIVE_TOO_LARGE', `${name} has a line of more than ${limit} bytes`, name);
      }
    };
    for (let piece = await this.read(); piece !== null; piece = await this.read()) {
      let at = 0;
      for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, at)) {
        add(piece.subarray(at, end));
        number += 1;
        yield read(begun.length === 1 ? (begun[0] ?? piece) : Buffer.concat(begun), number);
        begun = [];
        length = 0;
        at = end + 1;
      }
      if (at < piece.length) add(Buffer.from(piece.subarray(at)));
    }
    if (length > 0) {
      throw new ArchiveError('ARCHIVE_CORRUPT', `the last line of ${name} has no newline`, name);
    }
  }

  async *#contentOf(taken: { entry: TarEntry } | null): AsyncGenerator<Uint8Array, void, void> {
    for (;;) {
      // Past its time this must not look like a member that ended.
      if (this.#open !== taken)
        throw new Error('the content of a version was read after the next was asked for');
      const piece = await this.read();
      if (piece === null) return;
      yield piece;
    }
  }

  async #peek(): Promise<TarEntry | null> {
    if (this.#next === undefined) this.#next = (await this.#entries.next()).value ?? null;
    return this.#next;
  }

  #misplaced(found: string, expected: string): ArchiveError {
    if (!isMemberName(found)) {
      return new ArchiveError('ARCHIVE_UNSAFE', `no archive has a member named ${quoted(found)}`, found);
    }
    if (this.finished.some(({ name }) => name === found)) {
      return new ArchiveError('ARCHIVE_UNSAFE', `the archive has two members named ${found}`, found);
    }
    return new ArchiveError('ARCHIVE_INCONSISTENT', `${found} stands where ${expected} belongs`, found);
  }
}
