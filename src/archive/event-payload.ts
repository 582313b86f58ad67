import { endOfJsonString, isJsonWhitespace, jsonStringText, skipJsonWhitespace } from './json-text.ts';

/**
 * The payload of an event: JSON text, never parsed and written again, so that its numbers stay what they were. The rules
 * here are those of `docs/archive-format.md`; they hold for a reader and for an export alike.
 */

/** Longest payload, in bytes of the text PostgreSQL prints of it; see {@link payloadFault}. */
export const MAX_PAYLOAD_BYTES: number = 4 * 1024 * 1024;

/** Objects and arrays inside one another. PostgreSQL's own stack ends above 12 000. */
export const MAX_PAYLOAD_DEPTH = 4000;

/** Where an event says which import brought it. */
export const RESTORED_BY_KEY = 'restored_by_import';

const TOO_LONG = `has more than ${MAX_PAYLOAD_BYTES} bytes once written out`;

/** Room that a restore needs to say so. */
const ROOM_FOR_MARK = 128;
/** A uuid in quotes. */
const MARK_VALUE_LENGTH = 38;

// What PostgreSQL's numeric holds ("Numeric Types" of its manual).
const MAX_INTEGER_DIGITS = 131_072;
const MAX_FRACTION_DIGITS = 16_383;

/** A member of an object in JSON text: where its key, as it is spelled, and its value begin and end. */
export interface JsonMember {
  readonly key: string;
  readonly valueStart: number;
  readonly valueEnd: number;
}

/**
 * What keeps PostgreSQL from holding a payload, or this project from exporting it again, as a clause; null when nothing
 * does. The size is that of the text as jsonb prints it, in which `1e131000` has 131 001 digits, and a payload that no
 * import has marked yet has to leave 128 bytes of room for the mark.
 */
export function payloadFault(payload: string): string | null {
  try {
    // The scan comes first: what it lets pass costs little to parse.
    const scan = new PayloadScan(payload);
    if (scan.fault !== null) return scan.fault;
    JSON.parse(payload);
    return scan.byteLength > MAX_PAYLOAD_BYTES - roomFor(payload) ? TOO_LONG : null;
  } catch {
    return 'is not JSON text';
  }
}

function roomFor(payload: string): number {
  for (const { key, valueStart, valueEnd } of membersOf(payload)) {
    if (key === RESTORED_BY_KEY && valueEnd - valueStart >= MARK_VALUE_LENGTH) return 0;
  }
  return ROOM_FOR_MARK;
}

/** The members of a JSON text that is an object, as they are spelled, repeated ones included; none of any other. */
export function* membersOf(json: string): Generator<JsonMember, void, void> {
  let at = skipJsonWhitespace(json, 0);
  if (json[at] !== '{') return;
  at = skipJsonWhitespace(json, at + 1);
  while (json[at] !== '}' && at < json.length) {
    const keyEnd = endOfJsonString(json, at);
    const key = jsonStringText(json.slice(at, keyEnd));
    const valueStart = skipJsonWhitespace(json, skipJsonWhitespace(json, keyEnd) + 1);
    const valueEnd = endOfValue(json, valueStart);
    yield { key, valueStart, valueEnd };
    at = skipJsonWhitespace(json, valueEnd);
    if (json[at] === ',') at = skipJsonWhitespace(json, at + 1);
  }
}

/** Goes over a JSON text once: what stands against it, and how long jsonb prints it at most. */
class PayloadScan {
  fault: string | null = null;
  byteLength = 0;
  readonly #json: string;

  constructor(json: string) {
    this.#json = json;
    // What is no object is put into one when it is restored.
    let depth = json.startsWith('{', skipJsonWhitespace(json, 0)) ? 0 : 1;
    for (let at = 0; at < json.length && this.fault === null; ) {
      const c = json.charAt(at);
      if (c === '"') at = this.#string(at);
      else if (c === '-' || isDigit(c)) at = this.#number(at);
      else {
        if (c === '{' || c === '[') depth += 1;
        else if (c === '}' || c === ']') depth -= 1;
        if (depth > MAX_PAYLOAD_DEPTH) this.fault = `is nested more than ${MAX_PAYLOAD_DEPTH} deep`;
        // jsonb prints `{"a": 1, "b": 2}`.
        if (!isJsonWhitespace(c)) this.byteLength += c === ',' || c === ':' ? 2 : 1;
        at += 1;
      }
      if (this.byteLength > MAX_PAYLOAD_BYTES) this.fault ??= TOO_LONG;
    }
  }

  #string(start: number): number {
    const end = endOfJsonString(this.#json, start);
    const token = this.#json.slice(start, end);
    this.byteLength += Buffer.byteLength(token);
    if (!token.includes('\\')) return end;
    const text = jsonStringText(token);
    if (text.includes('\0')) this.fault = 'holds \\u0000, which PostgreSQL cannot store';
    else if (!text.isWellFormed()) {
      this.fault = 'holds half of a surrogate pair, which PostgreSQL cannot store';
    }
    return end;
  }

  #number(start: number): number {
    let end = start + 1;
    while (end < this.#json.length && /[0-9.eE+-]/.test(this.#json.charAt(end))) end += 1;
    const [mantissa = '', exponentText = '0'] = this.#json.slice(start, end).split(/[eE]/);
    const isNegative = mantissa.startsWith('-');
    const [integer = '', fraction = ''] = mantissa.slice(Number(isNegative)).split('.');
    const exponent = Number(exponentText);
    const integerDigits = Math.max(1, integer.length + exponent);
    const fractionDigits = Math.max(0, fraction.length - exponent);
    if (integerDigits > MAX_INTEGER_DIGITS || fractionDigits > MAX_FRACTION_DIGITS) {
      this.fault = 'holds a number with more digits than PostgreSQL can store';
    }
    this.byteLength += Number(isNegative) + integerDigits + (fractionDigits && fractionDigits + 1);
    return end;
  }
}

function isDigit(c: string): boolean {
  return c >= '0' && c <= '9';
}

function endOfValue(json: string, start: number): number {
  let depth = 0;
  let at = start;
  while (at < json.length) {
    const c = json.charAt(at);
    if (c === '"') {
      at = endOfJsonString(json, at);
      if (depth === 0) return at;
      continue;
    }
    if (depth === 0 && (c === ',' || c === '}' || isJsonWhitespace(c))) return at;
    if (c === '{' || c === '[') depth += 1;
    else if (c === '}' || c === ']') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
    at += 1;
  }
  return at;
}
