import { BACKSLASH, hexDigit, LETTER_U } from './json-bytes.ts';

/** What the letters of the short escapes stand for; the other three stand for themselves. */
const SHORT = new Map([...'bfnrt'].map((letter, i) => [letter.charCodeAt(0), '\b\f\n\r\t'.charCodeAt(i)]));

/**
 * The character that the escape at `at` stands for, both halves of a surrogate pair being one escape. The
 * text is known to be JSON without a half alone.
 */
export function escapedCodePoint(json: Buffer, at: number): number {
  const letter = json[at + 1] ?? BACKSLASH;
  if (letter !== LETTER_U) return SHORT.get(letter) ?? letter;
  const unit = codeUnit(json, at + 2);
  return isSurrogate(unit) ? 0x10000 + ((unit & 0x3ff) << 10) + (codeUnit(json, at + 8) & 0x3ff) : unit;
}

/** The position after the escape at `at`, in the same sense. */
export function endOfEscape(json: Buffer, at: number): number {
  if (json[at + 1] !== LETTER_U) return at + 2;
  return isSurrogate(codeUnit(json, at + 2)) ? at + 12 : at + 6;
}

/** How many bytes follow the first in the UTF-8 of a character. */
export function followingUtf8Bytes(codePoint: number): number {
  if (codePoint < 0x80) return 0;
  if (codePoint < 0x800) return 1;
  return codePoint < 0x10000 ? 2 : 3;
}

/** The byte of a character's UTF-8 after which `left` more come, the first if `left` is all that follow it. */
export function utf8Byte(codePoint: number, left: number): number {
  const following = followingUtf8Bytes(codePoint);
  const bits = codePoint >> (6 * left);
  if (left < following) return 0x80 | (bits & 0x3f);
  return following === 0 ? bits : ((0xff << (7 - following)) & 0xff) | bits;
}

function codeUnit(json: Buffer, at: number): number {
  let unit = 0;
  for (let p = at; p < at + 4; p++) unit = unit * 16 + hexDigit(json[p] ?? 0);
  return unit;
}

function isSurrogate(unit: number): boolean {
  return (unit & 0xf800) === 0xd800;
}
