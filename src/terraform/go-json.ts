const ESCAPED = /[<>&\u2028\u2029]/;
const ESCAPES: readonly (readonly [pattern: RegExp, spelling: string])[] = [
  [/</g, '\\u003c'],
  [/>/g, '\\u003e'],
  [/&/g, '\\u0026'],
  [/\u2028/g, '\\u2028'],
  [/\u2029/g, '\\u2029'],
];
/** The runtime holds every place of a replacement until its end: of a text of any length that would be too many. */
const PIECE = 65_536;

/**
 * A string, or a list of strings, as Go's `encoding/json` writes it: compact, with `<`, `>`, `&`, U+2028 and
 * U+2029 escaped. A list in this form is the text of `dependencies_raw` that is hashed (data model 3.5).
 */
export function goJson(value: string | readonly string[]): string {
  // JSON.stringify spells everything else as Go does since 1.22.
  const json = JSON.stringify(value);
  if (!ESCAPED.test(json)) return json;
  let spelled = '';
  for (let at = 0; at < json.length; at += PIECE) {
    let piece = json.slice(at, at + PIECE);
    for (const [pattern, spelling] of ESCAPES) piece = piece.replace(pattern, spelling);
    spelled += piece;
  }
  return spelled;
}

/** How much longer {@link goJson} makes the string that stands between `start` and `end`. */
export function bytesGainedInGo(json: Buffer, start: number, end: number): number {
  let gained = 0;
  for (let p = start; p < end; p++) {
    const c = json[p];
    if (c === 0x3c || c === 0x3e || c === 0x26) gained += 5;
    // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
    else if (c === 0xe2 && json[p + 1] === 0x80 && ((json[p + 2] ?? 0) & 0xfe) === 0xa8) gained += 3;
  }
  return gained;
}
