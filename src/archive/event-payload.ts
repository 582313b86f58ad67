import { CODE, jsonStringText, skipJsonWhitespace } from './json-text.ts';

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

/** Room that a restore needs to say so. */
const ROOM_FOR_MARK = 128;
/** A uuid in quotes. */
const MARK_VALUE_LENGTH = 38;

// What PostgreSQL's numeric holds ("Numeric Types" of its manual).
const MAX_INTEGER_DIGITS = 131_072;
const MAX_FRACTION_DIGITS = 16_383;

/** A member of an object in JSON text. */
export interface JsonMember {
  readonly key: string;
  /** As it is spelled. */
  readonly value: string;
}

/**
 * What keeps PostgreSQL from holding a payload, or this project from exporting it again, as a clause; null when nothing
 * does. The size is that of the text as jsonb prints it, in which `1e131000` has 131 001 digits, and a payload that no
 * import has marked yet has to leave 128 bytes of room for the mark. The text is gone over once, and nothing is built of it.
 */
export function payloadFault(payload: string): string | null {
  try {
    const byteLength = new PayloadScan(payload).scan();
    const isWithin =
      byteLength <= MAX_PAYLOAD_BYTES - ROOM_FOR_MARK ||
      (byteLength <= MAX_PAYLOAD_BYTES &&
        membersOf(payload).some(
          ({ key, value }) => key === RESTORED_BY_KEY && value.length >= MARK_VALUE_LENGTH,
        ));
    return isWithin ? null : `has more than ${MAX_PAYLOAD_BYTES} bytes once written out`;
  } catch (error) {
    if (error instanceof PayloadFault) return error.message;
    throw error;
  }
}

/** The members of a payload that is an object, repeated ones included; none of any other. {@link payloadFault} let it pass. */
export function membersOf(payload: string): JsonMember[] {
  const members: JsonMember[] = [];
  new PayloadScan(payload).scan(members);
  return members;
}

class PayloadFault extends Error {}

/** From the code of an opening brace or bracket to that of the closing one. */
const TO_CLOSING = 2;
const PLAIN_NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?/y;
/** Far below what PostgreSQL holds. */
const FEW_DIGITS = 100;
const NUMBER = /-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?/y;
const SIMPLE_ESCAPES: ReadonlySet<string> = new Set('"\\/bfnrt');

/** Goes over a payload. The methods take what stands next, or throw {@link PayloadFault}. */
class PayloadScan {
  readonly #json: string;
  #at = 0;
  /** How many bytes more than the text has, as far as it is taken, jsonb prints at most. */
  #growth = 0;

  constructor(json: string) {
    this.#json = json;
  }

  /** Takes all of it, and adds the members of an object to `members`. @returns how many bytes jsonb prints at most. */
  scan(members?: JsonMember[]): number {
    /** What closes each array and object that is open. */
    const open: number[] = [];
    let member: { readonly key: string; readonly start: number } | null = null;
    this.#whitespace();
    // What is no object is put into one when it is restored.
    const maxDepth = this.#next() === CODE.openBrace ? MAX_PAYLOAD_DEPTH : MAX_PAYLOAD_DEPTH - 1;
    for (;;) {
      if (open.at(-1) === CODE.closeBrace) {
        const keyStart = this.#at;
        this.#string();
        const token = members && open.length === 1 ? this.#json.slice(keyStart, this.#at) : null;
        this.#whitespace();
        this.#separator(CODE.colon);
        if (token !== null) member = { key: jsonStringText(token), start: this.#at };
      }
      const opening = this.#next();
      if (opening === CODE.openBrace || opening === CODE.openBracket) {
        const closing = opening + TO_CLOSING;
        if (open.push(closing) > maxDepth) {
          throw new PayloadFault(`is nested more than ${MAX_PAYLOAD_DEPTH} deep`);
        }
        this.#at += 1;
        this.#whitespace();
        if (this.#next() !== closing) continue;
      } else this.#scalar(opening);
      for (;;) {
        if (member !== null && open.length === 1) {
          members?.push({ key: member.key, value: this.#json.slice(member.start, this.#at) });
          member = null;
        }
        this.#whitespace();
        if (open.length === 0 || this.#next() !== open.at(-1)) break;
        open.pop();
        this.#at += 1;
      }
      if (open.length === 0) break;
      this.#separator(CODE.comma);
    }
    if (this.#at < this.#json.length) throw notJson();
    return Buffer.byteLength(this.#json) + this.#growth;
  }

  /** The code unit that stands next; NaN at the end. */
  #next(): number {
    return this.#json.charCodeAt(this.#at);
  }

  #whitespace(): void {
    const start = this.#at;
    this.#at = skipJsonWhitespace(this.#json, start);
    this.#growth -= this.#at - start;
  }

  /** A comma or a colon, and the white space behind it: jsonb prints one space. */
  #separator(code: number): void {
    if (this.#next() !== code) throw notJson();
    this.#at += 1;
    this.#growth += 1;
    this.#whitespace();
  }

  #scalar(first: number): void {
    if (first === CODE.quote) this.#string();
    else if (first === CODE.minus || (first >= CODE.zero && first <= CODE.nine)) this.#number();
    else {
      const word = ['true', 'false', 'null'].find((one) => this.#json.startsWith(one, this.#at));
      if (word === undefined) throw notJson();
      this.#at += word.length;
    }
  }

  #string(): void {
    if (this.#next() !== CODE.quote) throw notJson();
    let at = this.#at + 1;
    for (;;) {
      const c = this.#json.charCodeAt(at);
      if (c === CODE.quote) break;
      if (c === CODE.backslash) at = this.#escape(at);
      else if (c >= CODE.space) at += 1;
      else throw notJson();
    }
    this.#at = at + 1;
  }

  /** @returns the position behind the escape at this one. */
  #escape(at: number): number {
    if (SIMPLE_ESCAPES.has(this.#json.charAt(at + 1))) return at + 2;
    const unit = this.#escapedUnit(at);
    if (unit === 0) throw new PayloadFault('holds \\u0000, which PostgreSQL cannot store');
    if (unit < 0xd800 || unit > 0xdfff) return at + 6;
    const low = unit < 0xdc00 && this.#json.startsWith('\\u', at + 6) ? this.#escapedUnit(at + 6) : 0;
    if (low < 0xdc00 || low > 0xdfff) {
      throw new PayloadFault('holds half of a surrogate pair, which PostgreSQL cannot store');
    }
    return at + 12;
  }

  #escapedUnit(at: number): number {
    const spelled = this.#json.slice(at, at + 6);
    if (!/^\\u[0-9a-f]{4}$/i.test(spelled)) throw notJson();
    return Number.parseInt(spelled.slice(2), 16);
  }

  #number(): void {
    // Most numbers are printed as they are spelled.
    PLAIN_NUMBER.lastIndex = this.#at;
    if (PLAIN_NUMBER.test(this.#json)) {
      const end = PLAIN_NUMBER.lastIndex;
      if (end - this.#at < FEW_DIGITS && !'eE'.includes(this.#json.charAt(end) || ' ')) {
        this.#at = end;
        return;
      }
    }
    NUMBER.lastIndex = this.#at;
    const [spelled, integer = '', fraction = '', exponentText = ''] = NUMBER.exec(this.#json) ?? [];
    if (spelled === undefined) throw notJson();
    this.#at = NUMBER.lastIndex;
    const exponent = Number(exponentText);
    const integerDigits = Math.max(1, integer.length + exponent);
    const fractionDigits = Math.max(0, fraction.length - exponent);
    if (integerDigits > MAX_INTEGER_DIGITS || fractionDigits > MAX_FRACTION_DIGITS) {
      throw new PayloadFault('holds a number with more digits than PostgreSQL can store');
    }
    const sign = spelled.startsWith('-') ? 1 : 0;
    this.#growth += sign + integerDigits + (fractionDigits && fractionDigits + 1) - spelled.length;
  }
}

function notJson(): PayloadFault {
  return new PayloadFault('is not JSON text');
}
