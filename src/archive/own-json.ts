import { ArchiveError, quoted } from './errors.ts';
import { CODE, endOfJsonString, jsonStringText, skipJsonWhitespace } from './json-text.ts';

/** Where a piece of an archive's own JSON stands. */
export interface JsonPlace {
  /** The member. */
  readonly member: string;
  /** How messages call the piece: the member itself, or a line of it. */
  readonly where: string;
  /** Most commas and opening brackets: JSON can be small as text and large as objects. */
  readonly maxEntries: number;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** JSON, and what is wrong with it that parsing hides. */
interface OwnJson {
  readonly json: unknown;
  /**
   * For what would read otherwise elsewhere: a key given twice in one object, at any depth, of which parsers keep one or the
   * other (ARCHIVE_INCONSISTENT), and a key `__proto__` (ARCHIVE_UNSAFE).
   */
  readonly fault: ArchiveError | null;
}

/**
 * Parses a piece of an archive's own JSON.
 *
 * @throws ArchiveError ARCHIVE_CORRUPT when it is no JSON in UTF-8, ARCHIVE_TOO_LARGE when it has too many entries.
 */
export function parseOwnJson(bytes: Uint8Array, place: JsonPlace): OwnJson {
  try {
    const text = utf8.decode(bytes);
    return { fault: faultOfKeys(text, place), json: JSON.parse(text) };
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    // The parser's own message quotes the text around the fault.
    throw new ArchiveError('ARCHIVE_CORRUPT', `${place.where} is not JSON in UTF-8`, place.member);
  }
}

/** Goes over what should be JSON; whether it is one, {@link JSON.parse} says afterwards. */
function faultOfKeys(text: string, { member, where, maxEntries }: JsonPlace): ArchiveError | null {
  let repeated: string | null = null;
  let hasPrototype = false;
  /** The keys of each open object so far; null for an open array. */
  const open: (Set<string> | null)[] = [];
  let entries = 0;
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at);
    if (c === CODE.quote) {
      const end = endOfJsonString(text, at);
      const keys = open.at(-1);
      if (keys && text.charCodeAt(skipJsonWhitespace(text, end)) === CODE.colon) {
        const key = jsonStringText(text.slice(at, end));
        if (keys.has(key)) repeated ??= key;
        if (key === '__proto__') hasPrototype = true;
        keys.add(key);
      }
      at = end - 1;
    } else if (c === CODE.openBrace || c === CODE.openBracket || c === CODE.comma) {
      if (c !== CODE.comma) open.push(c === CODE.openBrace ? new Set() : null);
      entries += 1;
      if (entries > maxEntries) {
        throw new ArchiveError('ARCHIVE_TOO_LARGE', `${where} has more than ${maxEntries} entries`, member);
      }
    } else if (c === CODE.closeBrace || c === CODE.closeBracket) open.pop();
  }
  if (hasPrototype) return new ArchiveError('ARCHIVE_UNSAFE', `${where} has a field named __proto__`, member);
  if (repeated === null) return null;
  return new ArchiveError(
    'ARCHIVE_INCONSISTENT',
    `${where} has the field ${quoted(repeated)} twice in one object`,
    member,
  );
}
