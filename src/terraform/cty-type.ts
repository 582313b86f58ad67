import {
  decodeString,
  endOfScalar,
  endOfString,
  isDigit,
  MINUS,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  walkArray,
  walkObject,
} from './json-bytes.ts';

/** Longer text is never taken for a type: no real one comes near, and reading one costs memory. */
const MAX_TYPE_LENGTH = 1_048_576;

/** A type of Terraform's type system (go-cty), as far as it decides which JSON a value can be. */
export type CtyType =
  | { readonly kind: 'string' | 'number' | 'bool' | 'dynamic' }
  | { readonly kind: 'sequence' | 'map'; readonly element: CtyType }
  | { readonly kind: 'tuple'; readonly elements: readonly CtyType[] }
  | { readonly kind: 'object'; readonly attributes: ReadonlyMap<string, CtyType> };

const PRIMITIVES: ReadonlyMap<unknown, CtyType> = new Map(
  (['string', 'number', 'bool', 'dynamic'] as const).map((kind) => [kind, { kind }]),
);

/**
 * Reads a type expression in the form go-cty writes: `"string"`, `"number"`, `"bool"`, `"dynamic"`,
 * `["list"|"set"|"map", T]`, `["tuple", [T…]]`, `["object", {name: T…}]`, the last with a list of optional
 * names after it if it has any. Null for everything else.
 */
export function readCtyType(json: Buffer, start: number, end: number): CtyType | null {
  const isCandidate = json[start] === QUOTE || json[start] === OPEN_BRACKET;
  if (!isCandidate || end - start > MAX_TYPE_LENGTH) return null;
  return toCtyType(JSON.parse(json.toString('utf8', start, end)));
}

function toCtyType(expression: unknown): CtyType | null {
  if (!Array.isArray(expression)) return PRIMITIVES.get(expression) ?? null;
  const [kind, argument, optional]: unknown[] = expression;
  if (kind === 'object' && expression.length === 3) {
    if (!isNameList(optional)) return null;
  } else if (expression.length !== 2) return null;
  switch (kind) {
    case 'list':
    case 'set':
    case 'map': {
      const element = toCtyType(argument);
      return element && { kind: kind === 'map' ? 'map' : 'sequence', element };
    }
    case 'tuple': {
      if (!Array.isArray(argument)) return null;
      const elements = argument.map(toCtyType).filter((element) => element !== null);
      return elements.length === argument.length ? { kind, elements } : null;
    }
    case 'object': {
      if (typeof argument !== 'object' || argument === null || Array.isArray(argument)) return null;
      const attributes = new Map<string, CtyType>();
      for (const [name, attribute] of Object.entries(argument)) {
        const type = toCtyType(attribute);
        if (type === null) return null;
        attributes.set(name, type);
      }
      return { kind, attributes };
    }
    default:
      return null;
  }
}

function isNameList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string');
}

/**
 * The position after the value at `at` if go-cty could have written it for a value of `type`, else -1.
 * Null goes with every type, and nothing but null with `dynamic`: a known value has a type of its own.
 */
export function endIfConforming(json: Buffer, at: number, type: CtyType): number {
  const c = json[at] ?? 0;
  if (c === 0x6e) return at + 4;
  switch (type.kind) {
    case 'string':
      return c === QUOTE ? endOfString(json, at) : -1;
    case 'number':
      return c === MINUS || isDigit(c) ? endOfScalar(json, at) : -1;
    case 'bool':
      return c === 0x74 || c === 0x66 ? endOfScalar(json, at) : -1;
    case 'dynamic':
      return -1;
    case 'sequence':
      return endOfArray(json, at, () => type.element);
    case 'tuple': {
      let count = 0;
      const end = endOfArray(json, at, () => type.elements[count++]);
      return count === type.elements.length ? end : -1;
    }
    case 'map':
      return endOfObject(json, at, () => type.element);
    case 'object': {
      let count = 0;
      const end = endOfObject(json, at, (key) => {
        count++;
        return type.attributes.get(key);
      });
      return count === type.attributes.size ? end : -1;
    }
  }
}

function endOfArray(json: Buffer, at: number, elementType: () => CtyType | undefined): number {
  if (json[at] !== OPEN_BRACKET) return -1;
  return walkArray(json, at, (value) => endIfOf(json, value, elementType()));
}

function endOfObject(json: Buffer, at: number, memberType: (key: string) => CtyType | undefined): number {
  if (json[at] !== OPEN_BRACE) return -1;
  return walkObject(json, at, (key, value) =>
    endIfOf(json, value, memberType(decodeString(json, key, endOfString(json, key)))),
  );
}

function endIfOf(json: Buffer, at: number, type: CtyType | undefined): number {
  return type === undefined ? -1 : endIfConforming(json, at, type);
}
