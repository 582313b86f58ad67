/** The position of the next character from `start` on that is no white space (RFC 8259, section 2), or the end. */
export function skipJsonWhitespace(json: string, start: number): number {
  let at = start;
  for (;;) {
    const c = json.charCodeAt(at);
    if (c !== SPACE && c !== NEWLINE && c !== TAB && c !== RETURN) return at;
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
  while (json.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** The text of a string as it is spelled, quotes included. */
export function jsonStringText(token: string): string {
  return token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1);
}

const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const BACKSLASH = 0x5c;
