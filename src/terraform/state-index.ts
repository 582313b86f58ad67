import { parseInt64 } from '../base/int64.ts';
import { UnsupportedStateDocumentError } from './errors.ts';
import {
  BACKSLASH,
  decodeString,
  endOfScalar,
  endOfString,
  hasToken,
  MINUS,
  NINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipWhitespace,
  ZERO,
} from './json-bytes.ts';
import { JsonScanner } from './json-scanner.ts';
import type { StateDocumentLimits } from './limits.ts';
import { OffsetTable } from './offset-table.ts';

/** Columns of {@link StateIndex.outputs}. */
export const OUTPUT = { name: 0, width: 1 } as const;
/** Columns of {@link StateIndex.resources}. */
export const RESOURCE = { mode: 0, type: 1, name: 2, provider: 3, module: 4, width: 5 } as const;
/** Columns of {@link StateIndex.instances}. `resource` is a row number, the others positions. */
export const INSTANCE = {
  resource: 0,
  indexKey: 1,
  schemaVersion: 2,
  attributes: 3,
  attributesEnd: 4,
  sensitive: 5,
  sensitiveEnd: 6,
  dependencies: 7,
  deposed: 8,
  width: 9,
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
  readonly instances: OffsetTable;
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
const OUTPUT_KEYS = tokens('sensitive');
const RESOURCE_KEYS = tokens('mode', 'type', 'name', 'provider', 'module', 'instances');
const INSTANCE_KEYS = tokens(
  'index_key',
  'schema_version',
  'attributes',
  'sensitive_attributes',
  'dependencies',
  'deposed',
);

function tokens<Name extends string>(...names: Name[]): ReadonlyMap<Name, Buffer> {
  return new Map(names.map((name) => [name, Buffer.from(JSON.stringify(name))]));
}

/** What PostgreSQL's uuid input takes: any case, a hyphen after any four digits, braces. */
const UUID = /^(?:[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}|\{[0-9a-f]{4}(?:-?[0-9a-f]{4}){7}\})$/i;
const INT32_MAX = 2n ** 31n - 1n;

/**
 * Scans the whole document once, checking its grammar everywhere and its shape where Kilolock reads it
 * (data model 2.10, 3.2 and 3.4).
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
  /** Start of each root value, by key; the last of several. */
  readonly #root = new Map<string, number>();
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
      instances: this.#instances,
    };
  }

  #rootMember(keyStart: number, keyEnd: number, at: number): number {
    const key = this.#key(keyStart, keyEnd, ROOT_KEYS);
    if (key !== null) this.#root.set(key, at);
    if (key === 'resources') {
      this.#resources.truncate(0);
      this.#instances.truncate(0);
      return this.#array(at, 2, 'resources', (start) => this.#resource(start));
    }
    if (key === 'outputs') {
      this.#outputs.truncate(0);
      if (this.#isNull(at)) return this.#scanner.value(at, 1);
      this.#expect(at, OPEN_BRACE, '"outputs" must be an object');
      return this.#scanner.object(at, 2, (nameStart, _nameEnd, start) => this.#output(nameStart, start));
    }
    return this.#scanner.value(at, 1);
  }

  #output(nameStart: number, at: number): number {
    this.#expect(at, OPEN_BRACE, 'an output must be an object');
    const row = this.#entry(this.#outputs, at);
    this.#outputs.set(row, OUTPUT.name, nameStart);
    return this.#scanner.object(at, 3, (keyStart, keyEnd, start) => {
      const key = this.#key(keyStart, keyEnd, OUTPUT_KEYS);
      const end = this.#scanner.value(start, 3);
      if (key === 'sensitive') this.#checkBoolean(start);
      return end;
    });
  }

  #resource(at: number): number {
    this.#expect(at, OPEN_BRACE, 'a resource must be an object');
    const table = this.#resources;
    const row = this.#entry(table, at);
    const firstInstance = this.#instances.length;
    const end = this.#scanner.object(at, 3, (keyStart, keyEnd, start) => {
      const key = this.#key(keyStart, keyEnd, RESOURCE_KEYS);
      switch (key) {
        case 'instances':
          this.#instances.truncate(firstInstance);
          return this.#array(start, 4, 'instances', (instance) => this.#instance(instance, row));
        case 'mode':
        case 'type':
        case 'name':
        case 'provider':
        case 'module':
          table.set(row, RESOURCE[key], this.#isNull(start) ? 0 : start);
          if (!this.#isNull(start)) this.#expect(start, QUOTE, `"${key}" must be a string`);
      }
      return this.#scanner.value(start, 3);
    });
    this.#checkMode(at, table.get(row, RESOURCE.mode));
    return end;
  }

  #checkMode(resource: number, at: number): void {
    if (at === 0) this.#scanner.fail(resource, 'a resource has no "mode"');
    const mode = this.#text(at);
    if (mode !== 'managed' && mode !== 'data') {
      this.#scanner.fail(at, 'the mode of a resource must be "managed" or "data"');
    }
  }

  #instance(at: number, resource: number): number {
    this.#expect(at, OPEN_BRACE, 'an instance must be an object');
    const table = this.#instances;
    const row = this.#entry(table, at);
    table.set(row, INSTANCE.resource, resource);
    return this.#scanner.object(at, 5, (keyStart, keyEnd, start) => {
      const key = this.#key(keyStart, keyEnd, INSTANCE_KEYS);
      if (key === 'dependencies') {
        table.set(row, INSTANCE.dependencies, this.#isNull(start) ? 0 : start);
        return this.#array(start, 6, 'dependencies', (element) => this.#dependency(element));
      }
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
          this.#checkIndexKey(start, end);
          table.set(row, INSTANCE.indexKey, this.#isNull(start) ? 0 : start);
          break;
        case 'schema_version':
          this.#checkSchemaVersion(start, end);
          table.set(row, INSTANCE.schemaVersion, this.#isNull(start) ? 0 : start);
          break;
        case 'deposed':
          table.set(row, INSTANCE.deposed, this.#isNull(start) || end === start + 2 ? 0 : start);
      }
      return end;
    });
  }

  #dependency(at: number): number {
    this.#expect(at, QUOTE, 'a dependency must be a string');
    if (++this.#dependencies > this.#limits.maxDependencies) {
      this.#scanner.fail(at, `the document has more than ${this.#limits.maxDependencies} dependencies`);
    }
    return this.#scanner.string(at);
  }

  #checkIndexKey(start: number, end: number): void {
    if (this.#isNull(start) || this.#bytes[start] === QUOTE) return;
    if (!this.#isNumber(start)) this.#scanner.fail(start, '"index_key" must be an integer or a string');
    if (parseInt64(this.#bytes.toString('latin1', start, end)) === null) {
      this.#scanner.fail(start, '"index_key" is a number, but not an integer of 64 bits');
    }
  }

  #checkSchemaVersion(start: number, end: number): void {
    if (this.#isNull(start)) return;
    const version = parseInt64(this.#bytes.toString('latin1', start, end));
    if (version === null || version > INT32_MAX || version < -INT32_MAX - 1n) {
      this.#scanner.fail(start, '"schema_version" must be an integer of 32 bits');
    }
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
    if (this.#bytes.toString('latin1', at, endOfScalar(this.#bytes, at)) !== '4') {
      this.#scanner.fail(at, 'only version 4 of the state format is supported');
    }
  }

  #serial(): bigint {
    const at = this.#root.get('serial');
    if (at === undefined) throw new UnsupportedStateDocumentError('$', 'it has no "serial"');
    const text = this.#bytes.toString('latin1', at, endOfScalar(this.#bytes, at));
    const serial = text.startsWith('-') ? null : parseInt64(text);
    if (serial === null) this.#scanner.fail(at, '"serial" must be an integer from 0 to 9223372036854775807');
    return serial;
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
    if (at === undefined || this.#isNull(at)) return null;
    this.#expect(at, QUOTE, `"${key}" must be a string`);
    return this.#text(at);
  }

  /** An array of the structure, for which Go takes null as well. */
  #array(at: number, depth: number, key: string, onElement: (start: number) => number): number {
    if (this.#isNull(at)) return this.#scanner.value(at, depth - 1);
    this.#expect(at, OPEN_BRACKET, `"${key}" must be an array`);
    return this.#scanner.array(at, depth, onElement);
  }

  /** A new row, unless the document already has as many as it may. */
  #entry(table: OffsetTable, at: number): number {
    if (this.#outputs.length + this.#resources.length + this.#instances.length >= this.#limits.maxEntries) {
      this.#scanner.fail(
        at,
        `the document has more than ${this.#limits.maxEntries} resources, instances and outputs`,
      );
    }
    return table.add();
  }

  /**
   * The key's name if it is one of those known, else null. Go matches keys without regard to case and jsonb
   * keeps both spellings, so which of `serial` and `Serial` counts depends on the reader: such a twin is
   * refused.
   */
  #key<Name extends string>(start: number, end: number, known: ReadonlyMap<Name, Buffer>): Name | null {
    for (const [name, token] of known) {
      if (token.length === end - start && hasToken(this.#bytes, start, token)) return name;
    }
    if (this.#isPlain(start, end)) return null;
    const key = decodeString(this.#bytes, start, end);
    const folded = foldCase(key);
    for (const name of known.keys()) {
      if (key === name) return name;
      if (folded === name) {
        this.#scanner.fail(start, `a key differs from "${name}" only in the case of its letters`);
      }
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

  #checkBoolean(at: number): void {
    if (!this.#isNull(at) && this.#bytes[at] !== 0x74 && this.#bytes[at] !== 0x66) {
      this.#scanner.fail(at, '"sensitive" must be true or false');
    }
  }

  #isNull(at: number): boolean {
    return this.#bytes[at] === 0x6e;
  }

  #isNumber(at: number): boolean {
    const c = this.#bytes[at] ?? 0;
    return c === MINUS || (c >= ZERO && c <= NINE);
  }

  #text(at: number): string {
    return decodeString(this.#bytes, at, endOfString(this.#bytes, at));
  }
}

/** Simple case folding as Go's JSON decoder does it, which lets U+017F stand for s and U+212A for k. */
function foldCase(key: string): string {
  return key.replaceAll('\u017f', 's').toLowerCase();
}
