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
  for (let at = start + 1; at < json.length; at++) {
    const c = json.charCodeAt(at);
    if (c === QUOTE) return at + 1;
    if (c === BACKSLASH) at++;
  }
  return json.length;
}

/** The text of a string as it is spelled, quotes included. */
export function jsonStringText(token: string): string {
  return token.includes('\\') ? String(JSON.parse(token)) : token.slice(1, -1);
}

const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
