import { Consistency } from './consistency.ts';
import { openContainer } from './container.ts';
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
  const { tar, checkWindow } = openContainer(source, {
    ...limits,
    maxTotalBytes: maxTotalBytes < limits.maxTotalBytes ? maxTotalBytes : limits.maxTotalBytes,
  });
  const walk = new MemberWalk(tar);
  try {
    const size = await walk.take(MEMBER.manifest, limits.maxMetadataBytes);
    if (size > SMALL_MANIFEST_BYTES) {
      const outline = new Outline();
      for await (const piece of walk.content()) outline.read(piece);
      return decodeManifestState(outline.json(), limits);
    }
    const manifest = decodeManifest(await walk.readAll(), limits).value;
    checkWindow(manifest.zstdWindowLog);
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
const PICKED_KEY = /^\s*"(?:archive_format|required_features|state)"\s*:\s*$/;

/** The text of a manifest that comes in pieces, with every list and object left empty that is not looked at. */
class Outline {
  readonly #text = Buffer.alloc(MAX_PICKED_BYTES);
  #length = 0;
  #memberStart = 0;
  #depth = 0;
  #isPicked = false;
  #isInString = false;
  #isEscaped = false;

  read(piece: Uint8Array): void {
    for (const c of piece) {
      const isInString = this.#isInString;
      if (isInString) {
        this.#isInString = c !== CODE.quote || this.#isEscaped;
        this.#isEscaped = c === CODE.backslash && !this.#isEscaped;
      } else if (c === CODE.quote) this.#isInString = true;
      else if (CLOSING.has(c)) this.#depth -= 1;
      if (this.#depth <= 1 || this.#isPicked) this.#keep(c);
      if (isInString) continue;
      if (OPENING.has(c)) {
        if (this.#depth === 0) this.#memberStart = this.#length;
        if (this.#depth === 1) this.#isPicked = PICKED_KEY.test(this.#member());
        this.#depth += 1;
      } else if (c === CODE.comma && this.#depth === 1) this.#memberStart = this.#length;
    }
  }

  json(): Uint8Array {
    return this.#text.subarray(0, this.#length);
  }

  /** What stands of the member before the bracket that was kept last. */
  #member(): string {
    return this.#text.toString('latin1', this.#memberStart, this.#length - 1);
  }

  #keep(byte: number): void {
    if (this.#length === MAX_PICKED_BYTES) {
      const message = `${MEMBER.manifest} says more of its state than ${MAX_PICKED_BYTES} bytes`;
      throw new ArchiveError('ARCHIVE_TOO_LARGE', message, MEMBER.manifest);
    }
    this.#text[this.#length++] = byte;
  }
}
