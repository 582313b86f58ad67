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

/** JSON of an archive, and what is wrong with it that parsing hides. */
export interface OwnJson {
  readonly value: unknown;
  /**
   * Refuses what would read otherwise elsewhere: a key given twice in one object, at any depth, of which parsers keep one
   * or the other, and a key `__proto__`.
   *
   * @throws ArchiveError ARCHIVE_INCONSISTENT or ARCHIVE_UNSAFE.
   */
  checkKeys(): void;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses a piece of an archive's own JSON.
 *
 * @throws ArchiveError ARCHIVE_CORRUPT when it is no JSON in UTF-8, ARCHIVE_TOO_LARGE when it has too many entries.
 */
export function parseOwnJson(bytes: Uint8Array, place: JsonPlace): OwnJson {
  const { member, where } = place;
  let value: unknown;
  let keys: OddKeys;
  try {
    const text = utf8.decode(bytes);
    keys = findOddKeys(text, place);
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    // The parser's own message quotes the text around the fault.
    throw new ArchiveError('ARCHIVE_CORRUPT', `${where} is not JSON in UTF-8`, member);
  }
  return {
    value,
    checkKeys() {
      if (keys.hasPrototype) {
        throw new ArchiveError('ARCHIVE_UNSAFE', `${where} has a field named __proto__`, member);
      }
      if (keys.repeated !== null) {
        throw new ArchiveError(
          'ARCHIVE_INCONSISTENT',
          `${where} has the field ${quoted(keys.repeated)} twice in one object`,
          member,
        );
      }
    },
  };
}

interface OddKeys {
  repeated: string | null;
  hasPrototype: boolean;
}

/** Goes over what should be JSON; whether it is one, {@link JSON.parse} says afterwards. */
function findOddKeys(text: string, { member, where, maxEntries }: JsonPlace): OddKeys {
  const found: OddKeys = { repeated: null, hasPrototype: false };
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
        if (keys.has(key)) found.repeated ??= key;
        if (key === '__proto__') found.hasPrototype = true;
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
  return found;
}
