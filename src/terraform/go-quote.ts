const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
  ['"', '\\"'],
]);

/** What is not in the Unicode categories that Go's `strconv.IsPrint` prints, besides the ASCII space, and what ends a quotation. */
const ESCAPED = /["\\]|[^ \p{L}\p{M}\p{N}\p{P}\p{S}]/gu;

/**
 * Code points that became printable after Unicode 15.0, the version of Go's own tables (Go 1.21 to 1.26).
 * Node's tables are newer, and one character printed here but escaped there would be another address.
 */
const PRINTABLE_SINCE_UNICODE_15 =
  /[\u1acf-\u1aeb]|[\u088f-\u0897\u0c5c\u0cdc\u1b4e-\u1b4f\u1b7f\u1c89-\u1c8a\u20c1\u2427-\u2429\u2b96\u2ffc-\u2fff\u31e4-\u31ef\ua7cb-\ua7cf\ua7d2\ua7d4\ua7da-\ua7f1\ufbc3-\ufbd2\ufd90-\ufd91\ufdc8-\ufdce\u{105c0}-\u{105f3}\u{10940}-\u{10959}\u{10d40}-\u{10d8f}\u{10ec2}-\u{10efc}\u{11380}-\u{113e2}\u{116d0}-\u{116e3}\u{11b60}-\u{11bf9}\u{11db0}-\u{11de9}\u{11f5a}\u{13460}-\u{143fa}\u{16100}-\u{16139}\u{16d40}-\u{16d79}\u{16ea0}-\u{16ed3}\u{16ff2}-\u{16ff6}\u{187f8}-\u{187ff}\u{18cff}\u{18d09}-\u{18df2}\u{1cc00}-\u{1cef0}\u{1e5d0}-\u{1e6ff}\u{1f6d8}\u{1f777}-\u{1f77a}\u{1f8b2}-\u{1f8d8}\u{1fa54}-\u{1fa57}\u{1fa89}-\u{1fa8f}\u{1fabe}\u{1fac6}-\u{1facd}\u{1fadc}-\u{1fadf}\u{1fae9}-\u{1faef}\u{1fbcb}-\u{1fbef}\u{1fbfa}\u{2b73a}-\u{2b73f}\u{2cea2}-\u{2cead}\u{2ebf0}-\u{2ee5d}\u{323b0}-\u{33479}]/gu;

/** The runtime holds every place of a replacement until its end: of a text of any length that would be too many. */
const PIECE = 65_536;

/**
 * The string as Go's `strconv.Quote` writes it, quotes included: how Kilolock writes a `for_each` key in
 * an address (data model 3.3). Not the quoting of JSON, and not Terraform's own.
 */
export function goQuote(text: string): string {
  const pieces: string[] = ['"'];
  let end: number;
  for (let at = 0; at < text.length; at = end) {
    end = at + PIECE;
    // Both halves of a surrogate pair are one character.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    const piece = text.slice(at, end).replace(ESCAPED, escaped);
    pieces.push(piece.replace(PRINTABLE_SINCE_UNICODE_15, escaped));
  }
  pieces.push('"');
  return pieces.join('');
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}

function escaped(character: string): string {
  const short = ESCAPES.get(character);
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, '0')}`;
  return `\\U${code.toString(16).padStart(8, '0')}`;
}
