/** The characters of JSON's grammar, as `charCodeAt` gives them. */
export const CODE = {
  tab: 0x09,
  newline: 0x0a,
  return: 0x0d,
  space: 0x20,
  quote: 0x22,
  comma: 0x2c,
  minus: 0x2d,
  zero: 0x30,
  nine: 0x39,
  colon: 0x3a,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const;

/** The position of the next character from `start` on that is no white space (RFC 8259, section 2), or the end. */
export function skipJsonWhitespace(json: string, start: number): number {
  let at = start;
  for (;;) {
    const c = json.charCodeAt(at);
    if (c !== CODE.space && c !== CODE.newline && c !== CODE.tab && c !== CODE.return) return at;
    at += 1;
  }
}

/** The position behind the string whose opening quote is at `start`; the end when it is not closed. */
export function endOfJsonString(json: string, start: number): number {
  let quote = json.indexOf('"', start + 1);
  while (quote !== -1 && isEscaped(json, quote)) quote = json.indexOf('"', quote + 1);
  return quote === -1 ? json.length : quote + 1;
}

function isEscaped(json: string, at: number): boolean {
  let first = at;
  while (json.charCodeAt(first - 1) === CODE.backslash) first -= 1;
  return (at - first) % 2 === 1;
}

/** The text of a string as it is spelled, quotes included. */
export function jsonStringText(token: string): string {
  return token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1);
}
