import { Consistency } from './consistency.ts';
import { Container } from './container.ts';
import { ArchiveError } from './errors.ts';
import { type ArchiveLimits, MEMBER } from './format.ts';
import { CODE } from './json-text.ts';
import { MemberWalk } from './member-walk.ts';
import { decodeManifest, decodeManifestState } from './metadata.ts';
import type { ArchivedState } from './model.ts';
import { nameDamage } from './reader.ts';

/** A manifest of so many bytes is read whole within a few milliseconds. */
const SMALL_MANIFEST_BYTES = 256 * 1024;
/** What comes out of a decoder at once, and may reach beyond the manifest. */
const UNPACKED_IN_ONE_GO = 1024 * 1024;
/** A state's names stand in an index of PostgreSQL, which ends far below. */
const MAX_PICKED_BYTES = 1024 * 1024;

/**
 * The state that an archive claims to hold, before it is verified. Hardly more than a manifest may have is unpacked, whatever
 * is wrong with it, and of a large one the list of versions is passed over: the event loop does other things meanwhile.
 *
 * @param source the file; left as soon as the state is known.
 * @throws ArchiveError when the file does not begin as an archive; an error of the source comes out unchanged.
 */
export async function readManifestState(
  source: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
): Promise<ArchivedState> {
  const maxTotalBytes = BigInt(limits.maxMetadataBytes + UNPACKED_IN_ONE_GO);
  const container = new Container(source, {
    ...limits,
    maxTotalBytes: maxTotalBytes < limits.maxTotalBytes ? maxTotalBytes : limits.maxTotalBytes,
  });
  const tar = container.tar();
  const walk = new MemberWalk(tar);
  try {
    const size = await walk.take(MEMBER.manifest, limits.maxMetadataBytes);
    if (size > SMALL_MANIFEST_BYTES) {
      const members = new PickedMembers(['archive_format', 'required_features', 'state']);
      for await (const piece of walk.content()) members.read(piece);
      return decodeManifestState(members.json(), limits);
    }
    const manifest = decodeManifest(await walk.readAll(), limits).value;
    container.checkWindow(manifest.zstdWindowLog);
    new Consistency(manifest, limits);
    return manifest.state;
  } catch (error) {
    throw error instanceof ArchiveError ? await nameDamage(error, walk.reading, tar) : error;
  } finally {
    await tar.return();
  }
}

const OPENING: ReadonlySet<number> = new Set(Buffer.from('{['));
const CLOSING: ReadonlySet<number> = new Set(Buffer.from('}]'));

/** Picks members out of the text of a JSON object that comes in pieces. Whether it is one, nobody looks at. */
class PickedMembers {
  readonly #keys: readonly string[];
  readonly #picked: Buffer[] = [];
  #pickedBytes = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** The text of the member at hand, as far as it is kept; null when it is none of those that are wanted. */
  #member: Buffer | null = Buffer.alloc(0);
  #hasKey = false;

  constructor(keys: readonly string[]) {
    this.#keys = keys;
  }

  read(piece: Uint8Array): void {
    let from = 0;
    for (let at = 0; at < piece.length; at++) {
      const c = piece[at] ?? 0;
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (c === CODE.backslash) this.#isEscaped = true;
        else if (c === CODE.quote) this.#isInString = false;
      } else if (c === CODE.quote) this.#isInString = true;
      else if (OPENING.has(c)) {
        this.#depth += 1;
        if (this.#depth === 1) from = at + 1;
      } else if (this.#depth === 1 && c === CODE.colon && !this.#hasKey) {
        this.#keep(piece.subarray(from, at));
        from = at;
        const key = this.#member?.toString().trim();
        this.#hasKey = true;
        if (!this.#keys.some((wanted) => key === JSON.stringify(wanted))) this.#member = null;
      } else if (c === CODE.comma || CLOSING.has(c)) {
        if (this.#depth === 1) {
          this.#keep(piece.subarray(from, at));
          if (this.#member !== null) this.#picked.push(this.#member);
          this.#member = Buffer.alloc(0);
          this.#hasKey = false;
          from = at + 1;
        }
        if (c !== CODE.comma) this.#depth -= 1;
      }
    }
    if (this.#depth > 0) this.#keep(piece.subarray(from));
  }

  /** An object of these members. */
  json(): Buffer {
    return Buffer.from(`{${this.#picked.join()}}`);
  }

  #keep(bytes: Uint8Array): void {
    if (this.#member === null) return;
    this.#pickedBytes += bytes.length;
    if (this.#pickedBytes > MAX_PICKED_BYTES) {
      const message = `${MEMBER.manifest} says more of its state than ${MAX_PICKED_BYTES} bytes`;
      throw new ArchiveError('ARCHIVE_TOO_LARGE', message, MEMBER.manifest);
    }
    this.#member = Buffer.concat([this.#member, bytes]);
  }
}
