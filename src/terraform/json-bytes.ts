/** The bytes of JSON's own characters. */
export const TAB = 0x09;
export const LINE_FEED = 0x0a;
export const CARRIAGE_RETURN = 0x0d;
export const SPACE = 0x20;
export const QUOTE = 0x22;
export const PLUS = 0x2b;
export const COMMA = 0x2c;
export const MINUS = 0x2d;
export const POINT = 0x2e;
export const ZERO = 0x30;
const NINE = 0x39;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const LETTER_U = 0x75;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** True for the first byte of an object or an array. */
export function opensContainer(byte: number | undefined): boolean {
  return byte === OPEN_BRACE || byte === OPEN_BRACKET;
}

/** The first position at or after `at` that holds no white space. */
export function skipWhitespace(bytes: Buffer, at: number): number {
  let p = at;
  for (;;) {
    const c = bytes[p];
    if (c !== SPACE && c !== LINE_FEED && c !== CARRIAGE_RETURN && c !== TAB) return p;
    p++;
  }
}

/** The position after the string whose opening quote is at `at`, in text already known to be JSON. */
export function endOfString(bytes: Buffer, at: number): number {
  let p = at + 1;
  for (;;) {
    const c = bytes[p] ?? QUOTE;
    if (c === QUOTE) return p + 1;
    p += c === BACKSLASH ? 2 : 1;
  }
}

/** The position after the scalar at `at`, in text already known to be JSON. */
export function endOfScalar(bytes: Buffer, at: number): number {
  if (bytes[at] === QUOTE) return endOfString(bytes, at);
  let p = at;
  // Numbers and the three literals hold no byte at or below a comma but "+", and end before ] } or white space.
  for (;;) {
    const c = bytes[p] ?? COMMA;
    if ((c <= COMMA && c !== PLUS) || c === CLOSE_BRACKET || c === CLOSE_BRACE) return p;
    p++;
  }
}

/** The position after the object or array at `at`, in text already known to be JSON. */
export function endOfContainer(bytes: Buffer, at: number): number {
  let open = 0;
  let p = at;
  do {
    const c = bytes[p];
    if (c === QUOTE) {
      p = endOfString(bytes, p);
      continue;
    }
    if (opensContainer(c)) open += 1;
    else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) open -= 1;
    p += 1;
  } while (open > 0);
  return p;
}

/** The position after the value at `at`, in text already known to be JSON. */
export function endOfValue(bytes: Buffer, at: number): number {
  return opensContainer(bytes[at]) ? endOfContainer(bytes, at) : endOfScalar(bytes, at);
}

/**
 * Goes over the elements of the array at `at`, in text already known to be JSON.
 *
 * @param see is given where an element begins, and gives where it ends; -1 ends the walk.
 * @returns the position after the array; -1 when the walk was ended.
 */
export function walkArray(bytes: Buffer, at: number, see: (value: number) => number): number {
  let p = skipWhitespace(bytes, at + 1);
  while (bytes[p] !== CLOSE_BRACKET) {
    const end = see(p);
    if (end === -1) return -1;
    p = skipWhitespace(bytes, end);
    if (bytes[p] === COMMA) p = skipWhitespace(bytes, p + 1);
  }
  return p + 1;
}

/** Likewise goes over the members of the object at `at`. @param see is given where the key and the value begin. */
export function walkObject(bytes: Buffer, at: number, see: (key: number, value: number) => number): number {
  let p = skipWhitespace(bytes, at + 1);
  while (bytes[p] !== CLOSE_BRACE) {
    const end = see(p, startOfMemberValue(bytes, p));
    if (end === -1) return -1;
    p = skipWhitespace(bytes, end);
    if (bytes[p] === COMMA) p = skipWhitespace(bytes, p + 1);
  }
  return p + 1;
}

/** The value of the string token between `start` and `end`, quotes included, known to be JSON. */
export function decodeString(bytes: Buffer, start: number, end: number): string {
  for (let p = start; p < end; p++) {
    if (bytes[p] === BACKSLASH) return String(JSON.parse(bytes.toString('utf8', start, end)));
  }
  return bytes.toString('utf8', start + 1, end - 1);
}

/** Whether the bytes at `at` are those of `token`. */
export function hasToken(bytes: Buffer, at: number, token: Buffer): boolean {
  for (let i = 0; i < token.length; i++) {
    if (bytes[at + i] !== token[i]) return false;
  }
  return true;
}

/** Where the value of the member whose key is at `key` begins. */
export function startOfMemberValue(bytes: Buffer, key: number): number {
  return skipWhitespace(bytes, skipWhitespace(bytes, endOfString(bytes, key)) + 1);
}

/** Whether a byte is a decimal digit. */
export function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

/** What a hexadecimal digit stands for; -1 for every other byte. */
export function hexDigit(byte: number): number {
  if (isDigit(byte)) return byte - ZERO;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}

/** The position after the escape at `at` of a string known to be JSON; both halves of a surrogate pair are one escape. */
export function endOfEscape(bytes: Buffer, at: number): number {
  if (bytes[at + 1] !== LETTER_U) return at + 2;
  // D800 to DFFF.
  const isSurrogate = ((bytes[at + 2] ?? 0) | 0x20) === 0x64 && hexDigit(bytes[at + 3] ?? 0) >= 8;
  return isSurrogate ? at + 12 : at + 6;
}

/** What the letters of the short escapes stand for; the other three stand for themselves. */
const SHORT_ESCAPES = new Map(
  [...'bfnrt'].map((letter, i) => [letter.charCodeAt(0), '\b\f\n\r\t'.charCodeAt(i)]),
);

/** The character that this escape stands for. */
export function escapedCodePoint(bytes: Buffer, at: number): number {
  const letter = bytes[at + 1] ?? BACKSLASH;
  if (letter !== LETTER_U) return SHORT_ESCAPES.get(letter) ?? letter;
  const unit = codeUnit(bytes, at + 2);
  if (endOfEscape(bytes, at) === at + 6) return unit;
  return 0x10000 + ((unit & 0x3ff) << 10) + (codeUnit(bytes, at + 8) & 0x3ff);
}

function codeUnit(bytes: Buffer, at: number): number {
  let unit = 0;
  for (let p = at; p < at + 4; p++) unit = unit * 16 + hexDigit(bytes[p] ?? 0);
  return unit;
}
