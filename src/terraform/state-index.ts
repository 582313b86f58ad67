import { UnsupportedStateDocumentError } from './errors.ts';
import {
  BACKSLASH,
  CLOSE_BRACKET,
  decodeString,
  endOfScalar,
  endOfString,
  hasToken,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipWhitespace,
} from './json-bytes.ts';
import { JsonScanner } from './json-scanner.ts';
import {
  MAX_COMPARED_BYTES,
  MAX_INDEXED_BYTES,
  MAX_STRING_BYTES,
  type StateDocumentLimits,
  TOO_LONG_FOR_AN_INDEX,
} from './limits.ts';
import { OffsetTable } from './offset-table.ts';
import { Predecessors } from './predecessors.ts';
import { integerAt } from './resource-address.ts';

/** Columns of {@link StateIndex.outputs}. */
export const OUTPUT = {
  name: 0,
  value: 1,
  valueEnd: 2,
  type: 3,
  typeEnd: 4,
  sensitive: 5,
  columns: 6,
} as const;
/**
 * Columns of both {@link RESOURCE} and {@link INSTANCE}: an element of a list, and behind all others what it counts towards the
 * limits, and what it takes to know it again in the next document. Of one that is compared with none there is but the first.
 */
const ELEMENT = {
  /** Where it begins: a resource in the document, an instance counted from its resource. */
  start: 0,
  /** The bytes of its text; 0 when its rows do not follow from its text alone. */
  length: 11,
  jsonbGrowth: 12,
  expansion: 13,
  depth: 14,
  width: 15,
  dependencyCount: 16,
  /** A hash of what names it. */
  identity: 17,
  /** The row of the document before that it was taken over from, plus 1; 0 when it was scanned. */
  from: 18,
  columns: 19,
} as const;
/**
 * Columns of {@link StateIndex.resources}. Positions count from where the resource begins. Its instances are `count` rows
 * from `first` on; `slots` are the rows it has taken so far.
 */
export const RESOURCE = {
  ...ELEMENT,
  mode: 1,
  type: 2,
  name: 3,
  provider: 4,
  module: 5,
  first: 6,
  count: 7,
  slots: 8,
  /** How many there are in a document that is compared with none. */
  columnsAlone: 9,
} as const;
/**
 * Columns of {@link StateIndex.instances}. Positions count from where the instance begins. An instance with `from` has the
 * row in the database that the one it was taken over from has.
 */
export const INSTANCE = {
  ...ELEMENT,
  resource: 1,
  indexKey: 2,
  schemaVersion: 3,
  attributes: 4,
  attributesEnd: 5,
  sensitive: 6,
  sensitiveEnd: 7,
  dependencies: 8,
  dependenciesEnd: 9,
  deposed: 10,
  /** How many there are in a document that is compared with none. */
  columnsAlone: 11,
} as const;

/** The members that name a resource, and those that the rows of its instances show. */
const NAMING = ['mode', 'type', 'name', 'module'] as const;
const SHOWN = [...NAMING, 'provider'] as const;

/** Text of an instance with its resource, at the least, in states as they are. */
const USUAL_BYTES_A_ROW = 512;

/** Of the hash FNV-1a in 32 bits. */
const FNV_OFFSET = 0x811c9dc5 | 0;
const FNV_PRIME = 0x01000193;

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
  /**
   * Earlier lists of dependencies that the last one was read into, by row of `instances`, in their order; of instances whose
   * dependencies are not just what the last list says.
   */
  readonly earlierDependencies: ReadonlyMap<number, readonly number[]>;
  /** How many objects and arrays are open at once, at most: 1 for `{}`. */
  readonly depth: number;
  /** How many members one of them has, at most. */
  readonly width: number;
  /** How many bytes jsonb's binary form of the document has at most. */
  readonly jsonbBytes: number;
}

/** A document and its index. */
export interface IndexedDocument {
  readonly bytes: Buffer;
  readonly index: Pick<StateIndex, 'resources' | 'resourceCount' | 'instances'>;
}

const NO_DOCUMENT: IndexedDocument = {
  bytes: Buffer.alloc(0),
  index: {
    resources: new OffsetTable(RESOURCE.columns),
    resourceCount: 0,
    instances: new OffsetTable(INSTANCE.columns),
  },
};

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

/** No known key is longer, each character of it spelled as an escape. */
const MAX_KNOWN_KEY_BYTES = 6 * 'create_before_destroy'.length + 2;

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
 * Resources and instances whose text is that of one in the document before, byte for byte, are not scanned: they take over
 * its rows and what it counted. Texts are compared with what may be the same only, which is cheap whatever they are: where
 * two of them agree as far as the shorter goes, they are equal, so that no byte is compared more than four times.
 *
 * @param former the document before, read with the same limits; null: there is none. Neither may be longer than
 *   {@link MAX_COMPARED_BYTES} to be compared.
 * @throws UnsupportedStateDocumentError
 */
export function indexState(
  bytes: Buffer,
  limits: StateDocumentLimits,
  former: IndexedDocument | null,
): StateIndex {
  return new StateIndexer(bytes, limits, former ?? NO_DOCUMENT).index();
}

/** What was counted before an element of the document. */
class Count {
  jsonbGrowth = 0;
  expansion = 0;
  deepest = 0;
  widest = 0;
  dependencies = 0;
}

class StateIndexer {
  readonly #bytes: Buffer;
  readonly #limits: StateDocumentLimits;
  readonly #scanner: JsonScanner;
  readonly #isCompared: boolean;
  readonly #former: IndexedDocument;
  readonly #formerResources: Predecessors;
  readonly #formerInstances: Predecessors;
  readonly #outputs = new OffsetTable(OUTPUT.columns);
  readonly #resources: OffsetTable;
  readonly #instances: OffsetTable;
  readonly #earlierDependencies = new Map<number, number[]>();
  /** Start of the value that counts, by root key. */
  readonly #root = new Map<string, number>();
  /** Written anew for each: the runtime puts a literal that a closure holds among what is old, where 15 MB would gather. */
  readonly #beforeResource = new Count();
  readonly #beforeInstance = new Count();
  #resourceCount = 0;
  /** Whether the key last looked up was a known one in another case. */
  #wasFolded = false;
  #entries = 0;
  #dependencies = 0;
  /** How many rows of instances were taken over. */
  #takenOver = 0;

  constructor(bytes: Buffer, limits: StateDocumentLimits, former: IndexedDocument) {
    this.#bytes = bytes;
    this.#limits = limits;
    this.#scanner = new JsonScanner(bytes, limits);
    this.#isCompared = bytes.length <= MAX_COMPARED_BYTES;
    this.#former = this.#isCompared && former.bytes.length <= MAX_COMPARED_BYTES ? former : NO_DOCUMENT;
    const { resources, resourceCount, instances } = this.#former.index;
    // Memory that is not written to is none: too much of it costs less than to copy what was too little.
    const few = Math.ceil(bytes.length / USUAL_BYTES_A_ROW);
    const [ofResources, ofInstances] = this.#isCompared
      ? [RESOURCE.columns, INSTANCE.columns]
      : [RESOURCE.columnsAlone, INSTANCE.columnsAlone];
    this.#resources = new OffsetTable(ofResources, Math.max(few, resources.length));
    this.#instances = new OffsetTable(ofInstances, Math.max(few, instances.length));
    this.#formerResources = new Predecessors(resources, resourceCount, RESOURCE.identity);
    this.#formerInstances = new Predecessors(instances, 0, INSTANCE.identity);
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
    const { jsonbGrowth, expansion, deepest, widest } = this.#scanner;
    return {
      serial: this.#serial(),
      lineage: this.#lineage(),
      terraformVersion: this.#rootString('terraform_version'),
      outputs: this.#outputs,
      resources: this.#resources,
      resourceCount: this.#resourceCount,
      instances: this.#instances,
      earlierDependencies: this.#earlierDependencies,
      depth: deepest,
      width: widest,
      jsonbBytes: bytes.length + jsonbGrowth + expansion,
    };
  }

  #rootMember(keyStart: number, keyEnd: number, at: number): number {
    const key = this.#key(keyStart, keyEnd, ROOT_KEYS);
    switch (key) {
      case 'resources':
        return this.#resourceList(at);
      case 'outputs':
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
    return this.#scanner.object(at, 2, (nameStart, nameEnd, start) => {
      if (nameEnd - nameStart > MAX_INDEXED_BYTES) {
        this.#scanner.fail(nameStart, `the name of an output ${TOO_LONG_FOR_AN_INDEX}`);
      }
      return this.#output(nameStart, start);
    });
  }

  #output(nameStart: number, at: number): number {
    this.#countEntries(1, at);
    const row = this.#outputs.add();
    this.#outputs.set(row, OUTPUT.name, nameStart);
    if (this.#isNull(at)) return this.#scanner.value(at, 2);
    this.#expect(at, OPEN_BRACE, 'an output must be an object');
    return this.#scanner.object(at, 3, (keyStart, keyEnd, start) => {
      const key = this.#key(keyStart, keyEnd, OUTPUT_KEYS);
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
    const isNew = row === table.length;
    if (isNew) {
      table.set(table.add(), RESOURCE.start, at);
      const { next } = this.#formerResources;
      if (this.#repeatsResource(next, at)) return this.#takeOverResource(row, next, at);
    }
    if (this.#isNull(at)) return this.#scanner.value(at, 2);
    this.#expect(at, OPEN_BRACE, 'a resource must be an object');
    const before = this.#beforeResource;
    this.#beginElement(before);
    const entries = this.#entries;
    const takenOver = this.#takenOver;
    const earlierLists = this.#earlierDependencies.size;
    const start = table.get(row, RESOURCE.start);
    let former = -1;
    let isFirstList = isNew;
    const end = this.#scanner.object(at, 3, (keyStart, keyEnd, value) => {
      const key = this.#key(keyStart, keyEnd, RESOURCE_KEYS);
      switch (key) {
        case 'instances':
          if (isFirstList) {
            const { next } = this.#formerResources;
            former = this.#formerResources.find(this.#identifyResource(row));
            if (former !== next && this.#repeatsResource(former, at)) {
              this.#rewind(before);
              return ~this.#takeOverResource(row, former, at);
            }
          }
          this.#lookAmongInstancesOf(former);
          isFirstList = false;
          return this.#instanceList(row, value);
        case 'mode':
        case 'type':
        case 'name':
        case 'provider':
        case 'module':
          this.#checkString(key, value);
          if (!this.#isNull(value)) table.set(row, RESOURCE[key], value - start);
      }
      return this.#scanner.value(value, 3);
    });
    if (isNew && table.get(row, RESOURCE.from) !== 0) return end;
    const identity = this.#identifyResource(row);
    if (isNew && former === -1) this.#formerResources.find(identity);
    const isRegular =
      isNew &&
      this.#entries - entries === table.get(row, RESOURCE.count) &&
      this.#earlierDependencies.size === earlierLists;
    this.#endElement(table, row, before, isRegular ? end - at : 0);
    if (!isNew || (this.#takenOver > takenOver && !this.#hasMembersOf(row, former))) {
      this.#forgetFormer(row);
    }
    return end;
  }

  /** Whether the text of a resource of the document before stands at `at`, and all that it counts is within the limits. */
  #repeatsResource(former: number, at: number): boolean {
    const { resources } = this.#former.index;
    return (
      former !== -1 &&
      this.#entries + resources.get(former, RESOURCE.count) <= this.#limits.maxEntries &&
      this.#repeats(resources, former, resources.get(former, RESOURCE.start), at)
    );
  }

  #takeOverResource(row: number, former: number, at: number): number {
    const { resources } = this.#former.index;
    const table = this.#resources;
    table.copy(row, resources, former);
    table.set(row, RESOURCE.start, at);
    table.set(row, RESOURCE.from, former + 1);
    const count = resources.get(former, RESOURCE.count);
    const first = resources.get(former, RESOURCE.first);
    if (count > 0) table.set(row, RESOURCE.first, this.#instances.length);
    for (let i = 0; i < count; i++) this.#takeOverRow(this.#instances.add(), first + i, row);
    this.#entries += count;
    this.#formerResources.found(former);
    return this.#countElement(resources, former, at);
  }

  #takeOverInstance(row: number, former: number, at: number): number {
    const resource = this.#instances.get(row, INSTANCE.resource);
    const start = this.#instances.get(row, INSTANCE.start);
    this.#takeOverRow(row, former, resource);
    this.#instances.set(row, INSTANCE.start, start);
    this.#formerInstances.found(former);
    return this.#countElement(this.#former.index.instances, former, at);
  }

  #takeOverRow(row: number, former: number, resource: number): void {
    this.#instances.copy(row, this.#former.index.instances, former);
    this.#instances.set(row, INSTANCE.resource, resource);
    this.#instances.set(row, INSTANCE.from, former + 1);
    this.#takenOver += 1;
  }

  /** Makes of the rows of a resource such as have nothing to do with the document before. */
  #forgetFormer(resource: number): void {
    const table = this.#resources;
    table.set(resource, RESOURCE.from, 0);
    const first = table.get(resource, RESOURCE.first);
    const slots = table.get(resource, RESOURCE.slots);
    for (let slot = 0; slot < slots; slot++) this.#instances.set(first + slot, INSTANCE.from, 0);
  }

  /** Whether what the rows of its instances show of a resource is spelled as in one of the document before. */
  #hasMembersOf(row: number, former: number): boolean {
    const { bytes, index } = this.#former;
    return SHOWN.every((member) => {
      const here = this.#resources.get(row, RESOURCE[member]);
      const there = index.resources.get(former, RESOURCE[member]);
      if (here === 0 || there === 0) return here === there;
      const start = this.#resources.get(row, RESOURCE.start) + here;
      const formerStart = index.resources.get(former, RESOURCE.start) + there;
      const length = endOfString(this.#bytes, start) - start;
      return this.#isSameText(bytes, formerStart, start, length);
    });
  }

  #lookAmongInstancesOf(former: number): void {
    const { resources } = this.#former.index;
    if (former === -1) this.#formerInstances.lookWithin(0, 0);
    else {
      this.#formerInstances.lookWithin(
        resources.get(former, RESOURCE.first),
        resources.get(former, RESOURCE.count),
      );
    }
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
      const rows = this.#instances.length;
      const row = this.#instanceSlot(resource, count++, start);
      return this.#instance(row, row >= rows, start);
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
    const row = this.#instances.add();
    this.#instances.set(row, INSTANCE.resource, resource);
    this.#instances.set(row, INSTANCE.start, at - table.get(resource, RESOURCE.start));
    return row;
  }

  /** Rows of other resources follow those of `resource`, which needs one more in a line with its own. */
  #moveToEnd(resource: number, slots: number): void {
    const instances = this.#instances;
    const from = this.#resources.get(resource, RESOURCE.first);
    this.#resources.set(resource, RESOURCE.first, instances.length);
    for (let slot = 0; slot < slots; slot++) {
      const row = instances.add();
      instances.copy(row, instances, from + slot);
      const earlier = this.#earlierDependencies.get(from + slot);
      if (earlier !== undefined) this.#earlierDependencies.set(row, earlier);
    }
  }

  #instance(row: number, isNew: boolean, at: number): number {
    const table = this.#instances;
    const former = this.#formerInstances;
    if (isNew && this.#repeatsInstance(former.next, at)) return this.#takeOverInstance(row, former.next, at);
    if (this.#isNull(at)) return this.#scanner.value(at, 4);
    this.#expect(at, OPEN_BRACE, 'an instance must be an object');
    const before = this.#beforeInstance;
    this.#beginElement(before);
    const base = this.#baseOf(row);
    let isFound = !isNew;
    const end = this.#scanner.object(at, 5, (keyStart, keyEnd, start) => {
      const key = this.#key(keyStart, keyEnd, INSTANCE_KEYS);
      if (key === 'dependencies') return this.#dependencyList(row, start);
      if (key === 'attributes' && !isFound) {
        isFound = true;
        const { next } = former;
        const found = former.find(this.#identifyInstance(row));
        if (found !== next && this.#repeatsInstance(found, at)) {
          this.#rewind(before);
          return ~this.#takeOverInstance(row, found, at);
        }
      }
      const end = this.#scanner.value(start, 5);
      switch (key) {
        case 'attributes':
          table.set(row, INSTANCE.attributes, start - base);
          table.set(row, INSTANCE.attributesEnd, end - base);
          break;
        case 'sensitive_attributes':
          table.set(row, INSTANCE.sensitive, start - base);
          table.set(row, INSTANCE.sensitiveEnd, end - base);
          break;
        case 'index_key':
          table.set(row, INSTANCE.indexKey, this.#isNull(start) ? 0 : start - base);
          break;
        case 'schema_version':
          this.#checkInteger(key, start);
          if (!this.#isNull(start)) table.set(row, INSTANCE.schemaVersion, start - base);
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
          if (!this.#wasFolded) {
            table.set(row, INSTANCE.deposed, this.#isMark(start, end) ? start - base : 0);
          }
      }
      return end;
    });
    if (isNew && table.get(row, INSTANCE.from) !== 0) return end;
    const identity = this.#identifyInstance(row);
    if (!isFound) former.find(identity);
    const isRegular = isNew && !this.#earlierDependencies.has(row);
    this.#endElement(table, row, before, isRegular ? end - at : 0);
    return end;
  }

  /** Whether the text of an instance of the document before stands at `at`, and all that it counts is within the limits. */
  #repeatsInstance(former: number, at: number): boolean {
    if (former === -1) return false;
    const { resources, instances } = this.#former.index;
    const resource = resources.get(instances.get(former, INSTANCE.resource), RESOURCE.start);
    return this.#repeats(instances, former, resource + instances.get(former, INSTANCE.start), at);
  }

  /** What the positions of an instance's row count from. */
  #baseOf(row: number): number {
    const resource = this.#instances.get(row, INSTANCE.resource);
    return this.#resources.get(resource, RESOURCE.start) + this.#instances.get(row, INSTANCE.start);
  }

  #beginElement(before: Count): void {
    const scanner = this.#scanner;
    before.jsonbGrowth = scanner.jsonbGrowth;
    before.expansion = scanner.expansion;
    before.deepest = scanner.deepest;
    before.widest = scanner.widest;
    before.dependencies = this.#dependencies;
    scanner.deepest = 0;
    scanner.widest = 0;
  }

  /** @param length 0: the element cannot be taken over. */
  #endElement(table: OffsetTable, row: number, before: Readonly<Count>, length: number): void {
    const scanner = this.#scanner;
    table.set(row, ELEMENT.from, 0);
    table.set(row, ELEMENT.length, length);
    table.set(row, ELEMENT.jsonbGrowth, scanner.jsonbGrowth - before.jsonbGrowth);
    table.set(row, ELEMENT.expansion, scanner.expansion - before.expansion);
    table.set(row, ELEMENT.depth, scanner.deepest);
    table.set(row, ELEMENT.width, scanner.widest);
    table.set(row, ELEMENT.dependencyCount, this.#dependencies - before.dependencies);
    scanner.deepest = Math.max(scanner.deepest, before.deepest);
    scanner.widest = Math.max(scanner.widest, before.widest);
  }

  /** Counts what was counted before again, as if nothing had been scanned since. */
  #rewind({ dependencies, ...counted }: Readonly<Count>): void {
    Object.assign(this.#scanner, counted);
    this.#dependencies = dependencies;
  }

  /**
   * Whether the text of an element of the document before, which begins there at `start`, stands at `at`, and all that it
   * counts is within the limits. What is beyond them is scanned, to fail where it goes beyond them.
   */
  #repeats(former: OffsetTable, row: number, start: number, at: number): boolean {
    const length = former.get(row, ELEMENT.length);
    return (
      length !== 0 &&
      this.#isSameText(this.#former.bytes, start, at, length) &&
      this.#dependencies + former.get(row, ELEMENT.dependencyCount) <= this.#limits.maxDependencies &&
      this.#scanner.hasRoomFor(former.get(row, ELEMENT.expansion))
    );
  }

  /** Counts an element that was taken over as if it had been scanned at `at`, and returns the position after it. */
  #countElement(former: OffsetTable, row: number, at: number): number {
    const scanner = this.#scanner;
    scanner.jsonbGrowth += former.get(row, ELEMENT.jsonbGrowth);
    scanner.expansion += former.get(row, ELEMENT.expansion);
    scanner.deepest = Math.max(scanner.deepest, former.get(row, ELEMENT.depth));
    scanner.widest = Math.max(scanner.widest, former.get(row, ELEMENT.width));
    this.#dependencies += former.get(row, ELEMENT.dependencyCount);
    return at + former.get(row, ELEMENT.length);
  }

  #isSameText(other: Buffer, start: number, at: number, length: number): boolean {
    const bytes = this.#bytes;
    const end = at + length;
    return end <= bytes.length && other.compare(bytes, at, end, start, start + length) === 0;
  }

  #identifyResource(row: number): number {
    if (!this.#isCompared) return 0;
    const table = this.#resources;
    const start = table.get(row, RESOURCE.start);
    let hash = FNV_OFFSET;
    for (const member of NAMING) hash = this.#hashed(hash, start, table.get(row, RESOURCE[member]));
    table.set(row, RESOURCE.identity, hash);
    return hash;
  }

  #identifyInstance(row: number): number {
    if (!this.#isCompared) return 0;
    const table = this.#instances;
    const base = this.#baseOf(row);
    let hash = this.#resources.get(table.get(row, INSTANCE.resource), RESOURCE.identity);
    hash = this.#hashed(hash, base, table.get(row, INSTANCE.indexKey));
    hash = this.#hashed(hash, base, table.get(row, INSTANCE.deposed));
    table.set(row, INSTANCE.identity, hash);
    return hash;
  }

  /** Adds the scalar at `base + offset` to a hash, or that it is absent. */
  #hashed(seed: number, base: number, offset: number): number {
    let hash = Math.imul(seed ^ 0xff, FNV_PRIME);
    if (offset === 0) return hash;
    const end = endOfScalar(this.#bytes, base + offset);
    for (let p = base + offset; p < end; p++) hash = Math.imul(hash ^ (this.#bytes[p] ?? 0), FNV_PRIME);
    return hash;
  }

  #dependencyList(row: number, at: number): number {
    const table = this.#instances;
    const base = this.#baseOf(row);
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
    table.set(row, INSTANCE.dependencies, at - base);
    const end = this.#scanner.array(at, 6, (element) => this.#dependency(row, element));
    table.set(row, INSTANCE.dependenciesEnd, end - base);
    return end;
  }

  #dependency(row: number, at: number): number {
    if (++this.#dependencies > this.#limits.maxDependencies) {
      this.#scanner.fail(at, `the document has more than ${this.#limits.maxDependencies} dependencies`);
    }
    if (this.#isNull(at)) {
      // What it leaves as it was is told by the lists before it.
      if (!this.#earlierDependencies.has(row)) this.#earlierDependencies.set(row, []);
      return this.#scanner.value(at, 6);
    }
    this.#expect(at, QUOTE, 'a dependency must be a string');
    return this.#scanner.string(at);
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
    if (at === undefined) return null;
    const end = endOfString(this.#bytes, at);
    if (end - at > MAX_STRING_BYTES)
      this.#scanner.fail(at, `"${key}" has more than ${MAX_STRING_BYTES} bytes`);
    return decodeString(this.#bytes, at, end);
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
    if (length > MAX_KNOWN_KEY_BYTES || this.#isPlain(start, end)) return null;
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
