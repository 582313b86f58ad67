import type { StateDocument } from './document.ts';
import {
  decodeString,
  endOfString,
  endOfValue,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipWhitespace,
  walkArray,
  walkObject,
} from './json-bytes.ts';
import { soundsSecret } from './secret-names.ts';

/** What stands in place of a value that was taken out, as JSON. */
export const REDACTED_VALUE = '"(redacted)"';

/** A state without what is sensitive in it. */
export interface RedactedState {
  /** Exact length of `content` in bytes. */
  readonly byteLength: number;
  /** Views of the document, and what stands between them. */
  readonly content: Iterable<Uint8Array>;
  /** How many values were taken out. */
  readonly count: number;
}

/** Bytes that are replaced. */
interface Cut {
  readonly start: number;
  readonly end: number;
  readonly by: Uint8Array;
}

const MARKER = Buffer.from(REDACTED_VALUE);
/** What stands for the provider's private data, which is base64, and for attributes in the flat form of old. */
const NOTHING = Buffer.from('""');
const NO_ATTRIBUTES = Buffer.from('{}');
/** Deeper than any schema of a provider goes, and longer than any name in one: what is there is taken out. */
const MAX_DEPTH = 500;
const MAX_KEY_BYTES = 64 * 1024;
/** Paths are parsed; so many are in no instance. */
const MAX_MARKS_BYTES = 8 * 1024 * 1024;

/**
 * Takes out of a state what is sensitive, and leaves every other byte as it is: the attributes that `sensitive_attributes`
 * names, those whose name, or whose resource's type, sounds like a secret's ({@link soundsSecret}), the values of outputs that are
 * sensitive or sound so, the private data of providers, and attributes in the flat form of Terraform 0.11. Whatever
 * else holds a secret, unmarked, stays.
 *
 * Positions in the document are all it takes beside it; no value is parsed and written again.
 *
 * @param document known to be good; its bytes must not change while `content` is read.
 */
export function redactState({ bytes }: Pick<StateDocument, 'bytes'>): RedactedState {
  const cuts = new Redaction(bytes).cuts();
  let byteLength = bytes.length;
  for (const { start, end, by } of cuts) byteLength += by.length - (end - start);
  return { byteLength, content: withCuts(bytes, cuts), count: cuts.length };
}

function* withCuts(bytes: Buffer, cuts: readonly Cut[]): Generator<Uint8Array, void, void> {
  let at = 0;
  for (const { start, end, by } of cuts) {
    if (start > at) yield bytes.subarray(at, start);
    yield by;
    at = end;
  }
  if (at < bytes.length) yield bytes.subarray(at);
}

/** The steps of marked paths, each with what is marked below it; null: all of it. */
type Marks = Map<string, Marks | null>;

/** Goes over a document and notes what is to be cut, in order. */
class Redaction {
  readonly #bytes: Buffer;
  readonly #cuts: Cut[] = [];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  cuts(): readonly Cut[] {
    this.#members(skipWhitespace(this.#bytes, 0), (key, at) => {
      if (isKey(key, 'outputs')) return this.#members(at, (name, output) => this.#output(name, output));
      if (isKey(key, 'resources')) return this.#elements(at, (_, resource) => this.#resource(resource));
      return this.#skip(at);
    });
    return this.#cuts;
  }

  #output(name: string | null, at: number): number {
    let isSensitive = name === null || soundsSecret(name);
    this.#members(at, (key, value) => {
      if (isKey(key, 'sensitive') && this.#bytes[value] === LETTER_T) isSensitive = true;
      return this.#skip(value);
    });
    return this.#members(at, (key, value) =>
      isSensitive && isKey(key, 'value') ? this.#cut(value) : this.#skip(value),
    );
  }

  #resource(at: number): number {
    let hasSecretType = false;
    this.#members(at, (key, value) => {
      if (isKey(key, 'type')) {
        const type = this.#text(value);
        hasSecretType ||= type === null || soundsSecret(type);
      }
      return this.#skip(value);
    });
    return this.#members(at, (key, value) =>
      isKey(key, 'instances')
        ? this.#elements(value, (_, instance) => this.#instance(instance, hasSecretType))
        : this.#skip(value),
    );
  }

  #instance(at: number, hasSecretType: boolean): number {
    const marks: Marks = new Map();
    let isAllMarked = hasSecretType;
    this.#members(at, (key, value) => {
      const end = this.#skip(value);
      if (isKey(key, 'sensitive_attributes')) {
        isAllMarked ||=
          end - value > MAX_MARKS_BYTES || !addMarks(marks, this.#bytes.toString('utf8', value, end));
      }
      return end;
    });
    return this.#members(at, (key, value) => {
      if (isKey(key, 'attributes')) return this.#value(value, isAllMarked ? null : marks, 0);
      if (isKey(key, 'attributes_flat')) return this.#cut(value, NO_ATTRIBUTES);
      if (isKey(key, 'private')) return this.#cut(value, NOTHING);
      return this.#skip(value);
    });
  }

  /** @param marks what is marked in the value; null: all that is in it. */
  #value(at: number, marks: Marks | null | undefined, depth: number): number {
    if (depth > MAX_DEPTH) return this.#cut(at);
    const part = (key: string | null, value: number) => {
      const below = key === null ? null : marks?.get(key);
      return marks === null || below === null ? this.#cut(value) : this.#value(value, below, depth + 1);
    };
    if (this.#bytes[at] === OPEN_BRACKET) return this.#elements(at, (i, value) => part(String(i), value));
    if (this.#bytes[at] !== OPEN_BRACE) return marks === null ? this.#cut(at) : this.#skip(at);
    return this.#members(at, (key, value) =>
      key !== null && soundsSecret(key) ? this.#cut(value) : part(key, value),
    );
  }

  #cut(start: number, by: Uint8Array = MARKER): number {
    const end = this.#skip(start);
    const isNull = this.#bytes[start] === LETTER_N;
    // Where it has an empty value of its own, there is nothing to take out of null.
    if (by === MARKER || !isNull) this.#cuts.push({ start, end, by });
    return end;
  }

  /**
   * Goes over the members of an object; what is none is left.
   *
   * @param see is given a key, null when it is longer than any, and where its value begins; gives where that ends.
   * @returns where the object ends.
   */
  #members(at: number, see: (key: string | null, value: number) => number): number {
    if (this.#bytes[at] !== OPEN_BRACE) return this.#skip(at);
    return walkObject(this.#bytes, at, (key, value) => see(this.#text(key), value));
  }

  /** Likewise goes over the elements of a list. */
  #elements(at: number, see: (index: number, value: number) => number): number {
    if (this.#bytes[at] !== OPEN_BRACKET) return this.#skip(at);
    let index = 0;
    return walkArray(this.#bytes, at, (value) => see(index++, value));
  }

  /** The text of the string at a position; null when it is no string, or longer than any name. */
  #text(at: number): string | null {
    if (this.#bytes[at] !== QUOTE) return null;
    const end = endOfString(this.#bytes, at);
    return end - at > MAX_KEY_BYTES ? null : decodeString(this.#bytes, at, end);
  }

  #skip(at: number): number {
    return endOfValue(this.#bytes, at);
  }
}

const LETTER_T = 0x74;
const LETTER_N = 0x6e;

/** As Go's `encoding/json` knows the keys of a struct: whatever their case. */
function isKey(key: string | null, name: string): boolean {
  // By way of the upper case: letters with one of their own, as the long s, fold to it.
  return key?.toUpperCase().toLowerCase() === name;
}

/**
 * Adds the paths of one `sensitive_attributes`: a list of paths, each a list of steps with a type and a value, that of an index being a
 * value with its type. Of a list, a step is a number; of a map, a text.
 *
 * @returns false where it is of another form, or marks the whole.
 */
function addMarks(marks: Marks, json: string): boolean {
  let paths: unknown;
  try {
    paths = JSON.parse(json);
  } catch {
    return false;
  }
  if (paths === null) return true;
  if (!Array.isArray(paths)) return false;
  return paths.every((path: unknown) => {
    const steps = Array.isArray(path) ? path.map(stepOf) : [null];
    if (steps.length === 0) return false;
    let at: Marks = marks;
    for (const [i, step] of steps.entries()) {
      if (step === null) return false;
      const below = at.get(step);
      if (below === null) return true;
      if (i === steps.length - 1) at.set(step, null);
      else {
        const next: Marks = below ?? new Map();
        at.set(step, next);
        at = next;
      }
    }
    return true;
  });
}

function stepOf(step: unknown): string | null {
  const value = valueIn(step);
  const key = typeof value === 'object' ? valueIn(value) : value;
  return typeof key === 'string' || typeof key === 'number' ? String(key) : null;
}

function valueIn(step: unknown): unknown {
  return typeof step === 'object' && step !== null && 'value' in step ? step.value : undefined;
}
