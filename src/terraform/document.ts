import { isUtf8 } from 'node:buffer';
import { UnsupportedStateDocumentError } from './errors.ts';
import { findInvalidUtf8 } from './invalid-utf8.ts';
import {
  CLOSE_BRACKET,
  COMMA,
  decodeString,
  endOfScalar,
  endOfString,
  QUOTE,
  skipWhitespace,
} from './json-bytes.ts';
import { jsonPathAt } from './json-path.ts';
import { DEFAULT_STATE_DOCUMENT_LIMITS, MAX_INDEX_KEY_BYTES, type StateDocumentLimits } from './limits.ts';
import {
  type IndexKind,
  integerAt,
  NO_INDEX,
  type ResourceIndex,
  resourceAddress,
  stringIndex,
} from './resource-address.ts';
import { INSTANCE, indexState, OUTPUT, RESOURCE, type StateIndex } from './state-index.ts';

export { DEFAULT_STATE_DOCUMENT_LIMITS, type StateDocumentLimits } from './limits.ts';

/**
 * A Terraform state document of version 4, checked but not parsed: what the project reads of a raw state.
 *
 * Every `Buffer` handed out is a view of {@link bytes} (`subarray`, no copy) and holds JSON exactly as it
 * stands in the document, white space and spelling of numbers included. Do not write to them, and copy one
 * that must outlive a large document.
 */
export interface StateDocument {
  /** The document as it was given. */
  readonly bytes: Buffer;
  /** The document's own serial; 0 when absent. It can differ from the serial it is stored under. */
  readonly serial: bigint;
  /** As spelled in the document, which PostgreSQL's uuid type need not print back; '' when absent. */
  readonly lineage: string;
  /** Null when absent, which is not the same as ''. */
  readonly terraformVersion: string | null;
  /** How many outputs there are. Two with one name are one. */
  readonly outputCount: number;
  /** Whether some output is not where its name in the documented case would find it: under `Outputs`, or as `Value`. */
  readonly hasFoldedOutputs: boolean;
  /** How many objects and arrays are open at once, at most: 1 for `{}`. */
  readonly depth: number;
  /** How many keys and values it has, of all levels. */
  readonly tokens: number;
  /** The outputs in document order. Of two with one name the later counts. */
  outputs(): Iterable<StateOutput>;
  /** The resource instances in document order, deposed ones included, read one at a time. */
  instances(): Iterable<ResourceInstance>;
}

/** One output, as it becomes a row of `outputs` (data model 3.8). */
export interface StateOutput {
  readonly name: string;
  /** Raw JSON; `null` when absent. */
  readonly value: Buffer;
  /** Raw JSON: a type expression of Terraform; `"dynamic"` when absent. */
  readonly type: Buffer;
  readonly sensitive: boolean;
}

/** One instance of a resource with what its resource says, as it becomes a row of `resources` (data model 3.2). */
export interface ResourceInstance {
  /** In Kilolock's spelling (data model 3.3). An object and its deposed predecessors share one address. */
  readonly address: string;
  readonly mode: 'managed' | 'data';
  readonly type: string;
  readonly name: string;
  readonly provider: string;
  /** Address of the module, '' for the root module. */
  readonly modulePath: string;
  readonly indexKind: IndexKind;
  /** Decimal for kind `int`; null only for kind `none`. */
  readonly indexValue: string | null;
  readonly schemaVersion: number;
  /** Raw JSON; `{}` when absent. */
  readonly attributes: Buffer;
  /** Raw JSON of `sensitive_attributes`; `[]` when absent. */
  readonly sensitivePaths: Buffer;
  /** Addresses, in the document's order. */
  readonly dependencies: readonly string[];
  /** Whether this is an object waiting to be destroyed after its replacement was made. */
  readonly deposed: boolean;
  /** Where it stands in the document: `$.resources[2].instances[0]`. */
  readonly place: InstancePlace;
}

/** The position of an instance in a document, both counted from 0. */
export interface InstancePlace {
  readonly resource: number;
  readonly instance: number;
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const EMPTY_OBJECT = Buffer.from('{}');
const EMPTY_ARRAY = Buffer.from('[]');
const NULL = Buffer.from('null');
const DYNAMIC = Buffer.from('"dynamic"');

/**
 * Checks a whole state document in one pass over its bytes and gives access to its parts.
 *
 * Accepted is what Kilolock accepts and PostgreSQL can store: strict JSON in UTF-8 without a byte order
 * mark, NUL, or half surrogate pair, with numbers that `numeric` holds, within `limits`, and a state of version 4
 * that Go's `encoding/json` can read into Kilolock's own types (data model 2.10, 3.4, trap 3). Attributes, outputs
 * and every member that Kilolock does not know are checked as JSON and otherwise left alone.
 *
 * Besides the document itself this takes some 40 bytes per instance; nothing is parsed into a tree.
 *
 * @throws UnsupportedStateDocumentError naming the path, never a value.
 */
export function readStateDocument(
  bytes: Buffer,
  limits: StateDocumentLimits = DEFAULT_STATE_DOCUMENT_LIMITS,
): StateDocument {
  if (bytes.length > limits.maxBytes) {
    throw new UnsupportedStateDocumentError('$', `it is larger than ${limits.maxBytes} bytes`);
  }
  if (bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) {
    throw new UnsupportedStateDocumentError('$', 'it begins with a byte order mark');
  }
  const index = indexState(bytes, limits);
  if (!isUtf8(bytes)) {
    throw new UnsupportedStateDocumentError(jsonPathAt(bytes, findInvalidUtf8(bytes)), 'it is not UTF-8');
  }
  const document = new IndexedStateDocument(bytes, index);
  document.checkInstances();
  return document;
}

const INT32_MAX = 2n ** 31n - 1n;

class IndexedStateDocument implements StateDocument {
  readonly bytes: Buffer;
  readonly serial: bigint;
  readonly lineage: string;
  readonly terraformVersion: string | null;
  readonly hasFoldedOutputs: boolean;
  readonly depth: number;
  readonly tokens: number;
  readonly #index: StateIndex;

  constructor(bytes: Buffer, index: StateIndex) {
    this.bytes = bytes;
    this.serial = index.serial;
    this.lineage = index.lineage;
    this.terraformVersion = index.terraformVersion;
    this.hasFoldedOutputs = index.hasFoldedOutputs;
    this.depth = index.depth;
    this.tokens = index.tokens;
    this.#index = index;
  }

  /**
   * Checks what Kilolock checks of the instances after decoding: every index key by itself, and by PostgreSQL those
   * members that become columns of the rows, of which an address has but one.
   */
  checkInstances(): void {
    const { resources, resourceCount } = this.#index;
    /** The instances that no row could hold, by their place in the order of {@link instances}. */
    const unfit = new Map<number, () => UnsupportedStateDocumentError>();
    let ordinal = 0;
    for (let resource = 0; resource < resourceCount; resource++) {
      const first = resources.get(resource, RESOURCE.first);
      const count = resources.get(resource, RESOURCE.count);
      const badMode = count === 0 ? null : this.#checkMode(resource);
      for (let row = first; row < first + count; row++) {
        this.#checkIndexKey(row);
        const problem = badMode ?? this.#checkSchemaVersion(row);
        if (problem !== null) unfit.set(ordinal, problem);
        ordinal += 1;
      }
    }
    if (unfit.size === 0) return;
    const last = new Map<string, number>();
    ordinal = 0;
    for (const { address } of this.instances()) last.set(address, ordinal++);
    for (const counted of last.values()) {
      const problem = unfit.get(counted);
      if (problem !== undefined) throw problem();
    }
  }

  #checkMode(resource: number): (() => UnsupportedStateDocumentError) | null {
    const at = this.#index.resources.get(resource, RESOURCE.mode);
    if (at === 0) {
      return () => new UnsupportedStateDocumentError(`$.resources[${resource}]`, 'a resource has no "mode"');
    }
    const mode = this.#string(at);
    if (mode === 'managed' || mode === 'data') return null;
    return () => this.#problem(at, 'the mode of a resource must be "managed" or "data"');
  }

  #checkIndexKey(row: number): void {
    const at = this.#index.instances.get(row, INSTANCE.indexKey);
    if (at === 0 || integerAt(this.bytes, at) !== null) return;
    if (this.bytes[at] !== QUOTE) {
      throw this.#problem(at, '"index_key" must be an integer of 64 bits or a string');
    }
    if (endOfString(this.bytes, at) - at > MAX_INDEX_KEY_BYTES) {
      throw this.#problem(
        at,
        `"index_key" has more than ${MAX_INDEX_KEY_BYTES} bytes, which no index of PostgreSQL holds`,
      );
    }
  }

  #checkSchemaVersion(row: number): (() => UnsupportedStateDocumentError) | null {
    const at = this.#index.instances.get(row, INSTANCE.schemaVersion);
    if (at === 0) return null;
    const version = integerAt(this.bytes, at) ?? 0n;
    if (version <= INT32_MAX && version >= -INT32_MAX - 1n) return null;
    return () => this.#problem(at, '"schema_version" must be an integer of 32 bits');
  }

  /** Finding the path walks the document again, so that it is left to whoever throws. */
  #problem(at: number, reason: string): UnsupportedStateDocumentError {
    return new UnsupportedStateDocumentError(jsonPathAt(this.bytes, at), reason);
  }

  get outputCount(): number {
    return this.#outputRows().size;
  }

  *outputs(): Generator<StateOutput> {
    const table = this.#index.outputs;
    for (const [name, row] of this.#outputRows()) {
      yield {
        name,
        value: this.#slice(table.get(row, OUTPUT.value), table.get(row, OUTPUT.valueEnd), NULL),
        type: this.#slice(table.get(row, OUTPUT.type), table.get(row, OUTPUT.typeEnd), DYNAMIC),
        sensitive: table.get(row, OUTPUT.sensitive) !== 0,
      };
    }
  }

  /** The row of each output, by name: of two with one name, that of the later. */
  #outputRows(): Map<string, number> {
    const table = this.#index.outputs;
    const rows = new Map<string, number>();
    for (let row = 0; row < table.length; row++) rows.set(this.#string(table.get(row, OUTPUT.name)), row);
    return rows;
  }

  *instances(): Generator<ResourceInstance> {
    const { resources, resourceCount } = this.#index;
    for (let resource = 0; resource < resourceCount; resource++) {
      const first = resources.get(resource, RESOURCE.first);
      const count = resources.get(resource, RESOURCE.count);
      if (count === 0) continue;
      const identity = this.#resource(resource);
      for (let instance = 0; instance < count; instance++) {
        yield this.#instance(identity, { resource, instance }, first + instance);
      }
    }
  }

  #instance(identity: ResourceIdentity, place: InstancePlace, row: number): ResourceInstance {
    const table = this.#index.instances;
    const { mode, type, name, provider, modulePath } = identity;
    const index = this.#indexKey(table.get(row, INSTANCE.indexKey));
    return {
      address: resourceAddress(modulePath, mode, type, name, index),
      mode,
      type,
      name,
      provider,
      modulePath,
      indexKind: index.kind,
      indexValue: index.value,
      schemaVersion: this.#integer(table.get(row, INSTANCE.schemaVersion)),
      attributes: this.#slice(
        table.get(row, INSTANCE.attributes),
        table.get(row, INSTANCE.attributesEnd),
        EMPTY_OBJECT,
      ),
      sensitivePaths: this.#slice(
        table.get(row, INSTANCE.sensitive),
        table.get(row, INSTANCE.sensitiveEnd),
        EMPTY_ARRAY,
      ),
      dependencies: this.#dependencies(row),
      deposed: table.get(row, INSTANCE.deposed) !== 0,
      place,
    };
  }

  #resource(row: number): ResourceIdentity {
    const table = this.#index.resources;
    return {
      mode: this.#string(table.get(row, RESOURCE.mode)) === 'data' ? 'data' : 'managed',
      type: this.#string(table.get(row, RESOURCE.type)),
      name: this.#string(table.get(row, RESOURCE.name)),
      provider: this.#string(table.get(row, RESOURCE.provider)),
      modulePath: this.#string(table.get(row, RESOURCE.module)),
    };
  }

  #indexKey(at: number): ResourceIndex {
    if (at === 0) return NO_INDEX;
    if (this.bytes[at] === QUOTE) return stringIndex(this.#string(at));
    return { kind: 'int', value: this.#scalar(at) };
  }

  #integer(at: number): number {
    // `-0` is an integer to Go.
    return at === 0 ? 0 : Number(this.#scalar(at)) + 0;
  }

  #scalar(at: number): string {
    return this.bytes.toString('latin1', at, endOfScalar(this.bytes, at));
  }

  #string(at: number): string {
    return at === 0 ? '' : decodeString(this.bytes, at, endOfString(this.bytes, at));
  }

  #dependencies(row: number): string[] {
    const dependencies: string[] = [];
    const last = this.#index.instances.get(row, INSTANCE.dependencies);
    if (last === 0) return dependencies;
    for (const earlier of this.#index.earlierDependencies.get(row) ?? []) {
      this.#readStrings(earlier, dependencies);
    }
    dependencies.length = this.#readStrings(last, dependencies);
    return dependencies;
  }

  /** Reads the list of strings at `at` into `strings`, where a null leaves what is there; returns how many it has. */
  #readStrings(at: number, strings: string[]): number {
    let count = 0;
    let p = skipWhitespace(this.bytes, at + 1);
    while (this.bytes[p] !== CLOSE_BRACKET) {
      const end = endOfScalar(this.bytes, p);
      strings[count] = this.bytes[p] === QUOTE ? decodeString(this.bytes, p, end) : (strings[count] ?? '');
      count += 1;
      p = skipWhitespace(this.bytes, end);
      if (this.bytes[p] === COMMA) p = skipWhitespace(this.bytes, p + 1);
    }
    return count;
  }

  #slice(start: number, end: number, absent: Buffer): Buffer {
    return start === 0 ? absent : this.bytes.subarray(start, end);
  }
}

type ResourceIdentity = Pick<ResourceInstance, 'mode' | 'type' | 'name' | 'provider' | 'modulePath'>;
