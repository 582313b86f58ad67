import { UnsupportedStateDocumentError } from './errors.ts';
import { bytesGainedInGo } from './go-json.ts';
import {
  BACKSLASH,
  CLOSE_BRACKET,
  decodeString,
  endOfString,
  hasToken,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipWhitespace,
} from './json-bytes.ts';
import { JsonScanner } from './json-scanner.ts';
import type { StateDocumentLimits } from './limits.ts';
import { OffsetTable } from './offset-table.ts';
import { integerAt } from './resource-address.ts';

/** Columns of {@link StateIndex.outputs}. */
export const OUTPUT = {
  name: 0,
  value: 1,
  valueEnd: 2,
  type: 3,
  typeEnd: 4,
  sensitive: 5,
  width: 6,
} as const;
/**
 * Columns of {@link StateIndex.resources}. The instances of a resource are `count` rows from `first` on; `slots` are
 * the rows it has taken so far.
 */
export const RESOURCE = {
  mode: 0,
  type: 1,
  name: 2,
  provider: 3,
  module: 4,
  first: 5,
  count: 6,
  slots: 7,
  width: 8,
} as const;
/** Columns of {@link StateIndex.instances}. */
export const INSTANCE = {
  indexKey: 0,
  schemaVersion: 1,
  attributes: 2,
  attributesEnd: 3,
  sensitive: 4,
  sensitiveEnd: 5,
  dependencies: 6,
  deposed: 7,
  width: 8,
} as const;

/**
 * Where everything stands in a good state document. Positions are of the first byte of a value; 0 means
 * that the member is absent, or null where null means the same.
 */
export interface StateIndex {
  readonly serial: bigint;
  readonly lineage: string;
  readonly terraformVersion: string | null;
  readonly outputs: OffsetTable;
  readonly resources: OffsetTable;
  /** How many rows of `resources` count. */
  readonly resourceCount: number;
  readonly instances: OffsetTable;
  /** Earlier lists of dependencies that the last one was read into, by row of `instances`, in their order. */
  readonly earlierDependencies: ReadonlyMap<number, readonly number[]>;
  /** Whether the outputs are reached by a key in another case, or of an output's members one is. */
  readonly hasFoldedOutputs: boolean;
  /** Objects and arrays open at once, at most. */
  readonly depth: number;
  /** Keys and values together. */
  readonly tokens: number;
}

const ROOT_KEYS = tokens(
  'version',
  'terraform_version',
  'serial',
  'lineage',
  'outputs',
  'resources',
  'encrypted_data',
);
const OUTPUT_KEYS = tokens('value', 'type', 'sensitive');
const RESOURCE_KEYS = tokens('mode', 'type', 'name', 'provider', 'module', 'instances');
const INSTANCE_KEYS = tokens(
  'index_key',
  'schema_version',
  'attributes',
  'sensitive_attributes',
  'dependencies',
  'private',
  'create_before_destroy',
  'status',
  'tainted',
  'deposed',
);

/** A list and no map: keys are looked up once for each member of the structure, and an iterator costs more than it. */
type KnownKeys<Name extends string> = readonly { readonly name: Name; readonly token: Buffer }[];

function tokens<Name extends string>(...names: Name[]): KnownKeys<Name> {
  return names.map((name) => ({ name, token: Buffer.from(JSON.stringify(name)) }));
}

/** What PostgreSQL's uuid input takes: any case, a hyphen after any four digits, braces. */
const UUID = /^(?:[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}|\{[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\})$/i;

/**
 * Scans the whole document once, checking its grammar everywhere and its types where Kilolock reads it
 * (data model 2.10, 3.2 and 3.4), and finds what Go's `encoding/json` would find in it:
 *
 * - a key in another case is the same key, and keys take effect in the order of the document;
 * - null leaves a string, a number, a boolean or an object as it was, empties a list or a map, and is a value of its
 *   own where Kilolock keeps the JSON as it stands (attributes, output values);
 * - a second list is read into the elements of the first, those that an earlier, longer list left behind included; a
 *   second map is added to the first, its entries replacing those of one name.
 *
 * What hangs on the whole rather than on one value, such as the range of an index key, is the reader's to check.
 *
 * @throws UnsupportedStateDocumentError
 */
export function indexState(bytes: Buffer, limits: StateDocumentLimits): StateIndex {
  return new StateIndexer(bytes, limits).index();
}

class StateIndexer {
  readonly #bytes: Buffer;
  readonly #limits: StateDocumentLimits;
  readonly #scanner: JsonScanner;
  readonly #outputs = new OffsetTable(OUTPUT.width);
  readonly #resources = new OffsetTable(RESOURCE.width);
  readonly #instances = new OffsetTable(INSTANCE.width);
  readonly #earlierDependencies = new Map<number, number[]>();
  /** Start of the value that counts, by root key. */
  readonly #root = new Map<string, number>();
  #resourceCount = 0;
  #hasFoldedOutputs = false;
  /** Whether the key last looked up was a known one in another case. */
  #wasFolded = false;
  #entries = 0;
  #dependencies = 0;

  constructor(bytes: Buffer, limits: StateDocumentLimits) {
    this.#bytes = bytes;
    this.#limits = limits;
    this.#scanner = new JsonScanner(bytes, limits);
  }

  index(): StateIndex {
    const bytes = this.#bytes;
    const start = skipWhitespace(bytes, 0);
    this.#expect(start, OPEN_BRACE, 'the document must be a JSON object');
    const end = this.#scanner.object(start, 1, (keyStart, keyEnd, at) =>
      this.#rootMember(keyStart, keyEnd, at),
    );
    const rest = skipWhitespace(bytes, end);
    if (rest < bytes.length) this.#scanner.fail(rest, `something follows the document, at byte ${rest}`);
    this.#checkVersion();
    return {
      serial: this.#serial(),
      lineage: this.#lineage(),
      terraformVersion: this.#rootString('terraform_version'),
      outputs: this.#outputs,
      resources: this.#resources,
      resourceCount: this.#resourceCount,
      instances: this.#instances,
      earlierDependencies: this.#earlierDependencies,
      hasFoldedOutputs: this.#hasFoldedOutputs,
      depth: this.#scanner.deepest,
      tokens: this.#scanner.tokens,
    };
  }

  #rootMember(keyStart: number, keyEnd: number, at: number): number {
    const key = this.#key(keyStart, keyEnd, ROOT_KEYS);
    switch (key) {
      case 'resources':
        return this.#resourceList(at);
      case 'outputs':
        this.#hasFoldedOutputs ||= this.#wasFolded;
        return this.#outputMap(at);
      case 'version':
        if (!this.#isNull(at) && this.#integer(at) === null) this.#refuseVersion(at);
        break;
      case 'serial':
        this.#checkInteger(key, at);
        break;
      case 'terraform_version':
      case 'lineage':
        this.#checkString(key, at);
    }
    if (key !== null && !this.#isNull(at)) this.#root.set(key, at);
    return this.#scanner.value(at, 1);
  }

  #outputMap(at: number): number {
    if (this.#isNull(at)) {
      this.#outputs.truncate(0);
      return this.#scanner.value(at, 1);
    }
    this.#expect(at, OPEN_BRACE, '"outputs" must be an object');
    return this.#scanner.object(at, 2, (nameStart, _nameEnd, start) => this.#output(nameStart, start));
  }

  #output(nameStart: number, at: number): number {
    this.#countEntries(1, at);
    const row = this.#outputs.add();
    this.#outputs.set(row, OUTPUT.name, nameStart);
    if (this.#isNull(at)) return this.#scanner.value(at, 2);
    this.#expect(at, OPEN_BRACE, 'an output must be an object');
    return this.#scanner.object(at, 3, (keyStart, keyEnd, start) => {
      const key = this.#key(keyStart, keyEnd, OUTPUT_KEYS);
      this.#hasFoldedOutputs ||= this.#wasFolded;
      const end = this.#scanner.value(start, 3);
      if (key === 'value') {
        this.#outputs.set(row, OUTPUT.value, start);
        this.#outputs.set(row, OUTPUT.valueEnd, end);
      } else if (key === 'type') {
        this.#outputs.set(row, OUTPUT.type, start);
        this.#outputs.set(row, OUTPUT.typeEnd, end);
      } else if (key === 'sensitive' && !this.#isNull(start)) {
        this.#outputs.set(row, OUTPUT.sensitive, this.#boolean(key, start) ? start : 0);
      }
      return end;
    });
  }

  #resourceList(at: number): number {
    if (this.#isEmptyList(at, 'resources')) {
      this.#resources.truncate(0);
      this.#resourceCount = 0;
      return this.#scanner.value(at, 1);
    }
    let count = 0;
    const end = this.#scanner.array(at, 2, (start) => this.#resource(count++, start));
    this.#resourceCount = count;
    return end;
  }

  #resource(row: number, at: number): number {
    this.#countEntries(1, at);
    const table = this.#resources;
    if (row === table.length) table.add();
    if (this.#isNull(at)) return this.#scanner.value(at, 2);
    this.#expect(at, OPEN_BRACE, 'a resource must be an object');
    return this.#scanner.object(at, 3, (keyStart, keyEnd, start) => {
      const key = this.#key(keyStart, keyEnd, RESOURCE_KEYS);
      switch (key) {
        case 'instances':
          return this.#instanceList(row, start);
        case 'mode':
        case 'type':
        case 'name':
        case 'provider':
        case 'module':
          this.#checkString(key, start);
          if (!this.#isNull(start)) table.set(row, RESOURCE[key], start);
      }
      return this.#scanner.value(start, 3);
    });
  }

  #instanceList(resource: number, at: number): number {
    const table = this.#resources;
    if (this.#isEmptyList(at, 'instances')) {
      table.set(resource, RESOURCE.count, 0);
      table.set(resource, RESOURCE.slots, 0);
      return this.#scanner.value(at, 3);
    }
    let count = 0;
    const end = this.#scanner.array(at, 4, (start) => {
      this.#countEntries(1, start);
      return this.#instance(this.#instanceSlot(resource, count++, start), start);
    });
    table.set(resource, RESOURCE.count, count);
    return end;
  }

  /** The row of an instance: the one an earlier list of the same resource has taken for that place, or a new one. */
  #instanceSlot(resource: number, place: number, at: number): number {
    const table = this.#resources;
    const slots = table.get(resource, RESOURCE.slots);
    if (place < slots) return table.get(resource, RESOURCE.first) + place;
    if (slots === 0) table.set(resource, RESOURCE.first, this.#instances.length);
    else if (table.get(resource, RESOURCE.first) + slots !== this.#instances.length) {
      this.#countEntries(slots, at);
      this.#moveToEnd(resource, slots);
    }
    table.set(resource, RESOURCE.slots, place + 1);
    return this.#instances.add();
  }

  /** Rows of other resources follow those of `resource`, which needs one more in a line with its own. */
  #moveToEnd(resource: number, slots: number): void {
    const instances = this.#instances;
    const from = this.#resources.get(resource, RESOURCE.first);
    this.#resources.set(resource, RESOURCE.first, instances.length);
    for (let slot = 0; slot < slots; slot++) {
      const row = instances.add();
      for (let column = 0; column < INSTANCE.width; column++) {
        instances.set(row, column, instances.get(from + slot, column));
      }
      const earlier = this.#earlierDependencies.get(from + slot);
      if (earlier !== undefined) this.#earlierDependencies.set(row, earlier);
    }
  }

  #instance(row: number, at: number): number {
    const table = this.#instances;
    if (this.#isNull(at)) return this.#scanner.value(at, 4);
    this.#expect(at, OPEN_BRACE, 'an instance must be an object');
    return this.#scanner.object(at, 5, (keyStart, keyEnd, start) => {
      const key = this.#key(keyStart, keyEnd, INSTANCE_KEYS);
      if (key === 'dependencies') return this.#dependencyList(row, start);
      const end = this.#scanner.value(start, 5);
      switch (key) {
        case 'attributes':
          table.set(row, INSTANCE.attributes, start);
          table.set(row, INSTANCE.attributesEnd, end);
          break;
        case 'sensitive_attributes':
          table.set(row, INSTANCE.sensitive, start);
          table.set(row, INSTANCE.sensitiveEnd, end);
          break;
        case 'index_key':
          table.set(row, INSTANCE.indexKey, this.#isNull(start) ? 0 : start);
          break;
        case 'schema_version':
          this.#checkInteger(key, start);
          if (!this.#isNull(start)) table.set(row, INSTANCE.schemaVersion, start);
          break;
        case 'private':
        case 'status':
          this.#checkString(key, start);
          break;
        case 'create_before_destroy':
        case 'tainted':
          if (!this.#isNull(start)) this.#boolean(key, start);
          break;
        case 'deposed':
          // No member that Kilolock knows; Terraform marks with it an object that waits to be destroyed.
          if (!this.#wasFolded) table.set(row, INSTANCE.deposed, this.#isMark(start, end) ? start : 0);
      }
      return end;
    });
  }

  #dependencyList(row: number, at: number): number {
    const table = this.#instances;
    const earlier = table.get(row, INSTANCE.dependencies);
    if (this.#isEmptyList(at, 'dependencies')) {
      table.set(row, INSTANCE.dependencies, 0);
      this.#earlierDependencies.delete(row);
      return this.#scanner.value(at, 5);
    }
    if (earlier !== 0) {
      const lists = this.#earlierDependencies.get(row) ?? [];
      lists.push(earlier);
      this.#earlierDependencies.set(row, lists);
    }
    table.set(row, INSTANCE.dependencies, at);
    return this.#scanner.array(at, 6, (element) => this.#dependency(element));
  }

  #dependency(at: number): number {
    if (++this.#dependencies > this.#limits.maxDependencies) {
      this.#scanner.fail(at, `the document has more than ${this.#limits.maxDependencies} dependencies`);
    }
    if (this.#isNull(at)) return this.#scanner.value(at, 6);
    this.#expect(at, QUOTE, 'a dependency must be a string');
    const end = this.#scanner.string(at);
    this.#scanner.expand(at, bytesGainedInGo(this.#bytes, at, end), 'its dependencies are spelled as in Go');
    return end;
  }

  #checkVersion(): void {
    const at = this.#root.get('version');
    if (at === undefined) {
      throw new UnsupportedStateDocumentError(
        '$',
        this.#root.has('encrypted_data')
          ? 'it has no "version" but "encrypted_data": it is a state encrypted by OpenTofu, which Kilolock cannot hold'
          : 'it has no "version"',
      );
    }
    if (this.#integer(at) !== 4n) this.#refuseVersion(at);
  }

  #refuseVersion(at: number): never {
    return this.#scanner.fail(at, 'only version 4 of the state format is supported');
  }

  #serial(): bigint {
    const at = this.#root.get('serial');
    return at === undefined ? 0n : (this.#integer(at) ?? 0n);
  }

  #lineage(): string {
    const lineage = this.#rootString('lineage') ?? '';
    if (lineage !== '' && !UUID.test(lineage)) {
      this.#scanner.fail(this.#root.get('lineage') ?? 0, '"lineage" is neither empty nor a uuid');
    }
    return lineage;
  }

  /** A string of the document itself; null when it is absent or JSON null. */
  #rootString(key: string): string | null {
    const at = this.#root.get(key);
    return at === undefined ? null : decodeString(this.#bytes, at, endOfString(this.#bytes, at));
  }

  /** Whether a list of the structure is null or has no element: either makes Go begin with new elements. */
  #isEmptyList(at: number, key: string): boolean {
    if (this.#isNull(at)) return true;
    this.#expect(at, OPEN_BRACKET, `"${key}" must be an array`);
    return this.#bytes[skipWhitespace(this.#bytes, at + 1)] === CLOSE_BRACKET;
  }

  #countEntries(entries: number, at: number): void {
    this.#entries += entries;
    if (this.#entries > this.#limits.maxEntries) {
      this.#scanner.fail(
        at,
        `the document has more than ${this.#limits.maxEntries} resources, instances and outputs`,
      );
    }
  }

  /** The key's name if it is one of those known, in whatever case, else null. */
  #key<Name extends string>(start: number, end: number, known: KnownKeys<Name>): Name | null {
    this.#wasFolded = false;
    const length = end - start;
    for (let i = 0; i < known.length; i++) {
      const candidate = known[i];
      if (candidate?.token.length === length && hasToken(this.#bytes, start, candidate.token)) {
        return candidate.name;
      }
    }
    if (this.#isPlain(start, end)) return null;
    const key = decodeString(this.#bytes, start, end);
    const folded = foldCase(key);
    for (const { name } of known) {
      if (folded !== name) continue;
      this.#wasFolded = key !== name;
      return name;
    }
    return null;
  }

  /** Whether a string is spelled in ASCII without capitals and escapes, so that it can be no twin of another. */
  #isPlain(start: number, end: number): boolean {
    for (let p = start; p < end; p++) {
      const c = this.#bytes[p] ?? 0;
      if (c >= 0x80 || c === BACKSLASH || (c >= 0x41 && c <= 0x5a)) return false;
    }
    return true;
  }

  #expect(at: number, byte: number, reason: string): void {
    if (this.#bytes[at] !== byte) this.#scanner.fail(at, reason);
  }

  #checkString(key: string, at: number): void {
    if (!this.#isNull(at)) this.#expect(at, QUOTE, `"${key}" must be a string`);
  }

  #checkInteger(key: string, at: number): void {
    if (!this.#isNull(at) && this.#integer(at) === null) {
      this.#scanner.fail(at, `"${key}" must be an integer of 64 bits`);
    }
  }

  /** The integer at `at`; null for anything else. */
  #integer(at: number): bigint | null {
    return integerAt(this.#bytes, at);
  }

  #boolean(key: string, at: number): boolean {
    const isTrue = this.#bytes[at] === 0x74;
    if (!isTrue && this.#bytes[at] !== 0x66) this.#scanner.fail(at, `"${key}" must be true or false`);
    return isTrue;
  }

  /** Whether a value is there and is not the empty string. */
  #isMark(start: number, end: number): boolean {
    return !this.#isNull(start) && end > start + 2;
  }

  #isNull(at: number): boolean {
    return this.#bytes[at] === 0x6e;
  }
}

/** Simple case folding as Go's JSON decoder does it, which lets U+017F stand for s and U+212A for k. */
function foldCase(key: string): string {
  return key.replaceAll('\u017f', 's').toLowerCase();
}
