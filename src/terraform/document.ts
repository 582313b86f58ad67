import { isUtf8 } from 'node:buffer';
import { UnsupportedStateDocumentError } from './errors.ts';
import { findInvalidUtf8 } from './invalid-utf8.ts';
import { decodeString, endOfScalar, endOfString, QUOTE, walkArray } from './json-bytes.ts';
import { jsonPathAt } from './json-path.ts';
import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  MAX_INDEXED_BYTES,
  MAX_REPEATED_BYTES,
  MAX_STRING_BYTES,
  type StateDocumentLimits,
  TOO_LONG_FOR_AN_INDEX,
} from './limits.ts';
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
  /** Raw JSON: a list of addresses; `[]` when absent. */
  readonly dependencies: Buffer;
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
 * Besides the document itself this takes some 80 bytes for each instance and each resource; nothing is parsed into a tree.
 *
 * @param former a document read before with the same limits, unchanged since: what is the same in both, byte for byte, is
 *   looked at no more. The result does not depend on it.
 * @throws UnsupportedStateDocumentError naming the path, never a value.
 */
export function readStateDocument(
  bytes: Buffer,
  limits: StateDocumentLimits = DEFAULT_STATE_DOCUMENT_LIMITS,
  former: StateDocument | null = null,
): StateDocument {
  if (bytes.length > limits.maxBytes) {
    throw new UnsupportedStateDocumentError('$', `it is larger than ${limits.maxBytes} bytes`);
  }
  if (bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) {
    throw new UnsupportedStateDocumentError('$', 'it begins with a byte order mark');
  }
  const index = indexState(bytes, limits, former);
  if (!isUtf8(bytes)) {
    throw new UnsupportedStateDocumentError(jsonPathAt(bytes, findInvalidUtf8(bytes)), 'it is not UTF-8');
  }
  const document = new StateDocument(bytes, index);
  document.checkInstances();
  return document;
}

const INT32_MAX = 2n ** 31n - 1n;

/**
 * A Terraform state document of version 4, checked but not parsed: what the project reads of a raw state. Made by
 * {@link readStateDocument}.
 *
 * Every `Buffer` handed out is a view of {@link bytes} (`subarray`, no copy) and holds JSON exactly as it
 * stands in the document, white space and spelling of numbers included. Do not write to them, and copy one
 * that must outlive a large document.
 */
export class StateDocument {
  /** The document as it was given. */
  readonly bytes: Buffer;
  /** The document's own serial; 0 when absent. It can differ from the serial it is stored under. */
  readonly serial: bigint;
  /** As spelled in the document, which PostgreSQL's uuid type need not print back; '' when absent. */
  readonly lineage: string;
  /** Null when absent, which is not the same as ''. */
  readonly terraformVersion: string | null;
  /** Where everything stands, and how large it is. */
  readonly index: StateIndex;
  /** What the instances read one after the other have in common. */
  #lastResource: ResourceMembers | null = null;

  constructor(bytes: Buffer, index: StateIndex) {
    this.bytes = bytes;
    this.serial = index.serial;
    this.lineage = index.lineage;
    this.terraformVersion = index.terraformVersion;
    this.index = index;
  }

  /**
   * Checks what Kilolock checks of the instances after decoding: every index key by itself, and by PostgreSQL those
   * members that become columns of the rows, of which an address has but one. What was taken over from another document
   * was checked with it.
   */
  checkInstances(): void {
    const { resources, resourceCount, instances } = this.index;
    /** The rows of the index whose instances no row of the database could hold. */
    const unfit = new Set<number>();
    let repeatedBytes = 0;
    for (let resource = 0; resource < resourceCount; resource++) {
      const first = resources.get(resource, RESOURCE.first);
      const count = resources.get(resource, RESOURCE.count);
      if (count > 1) repeatedBytes += (count - 1) * this.#sharedBytes(resource);
      if (repeatedBytes > MAX_REPEATED_BYTES) {
        throw new UnsupportedStateDocumentError(
          `$.resources[${resource}]`,
          `the rows of the instances would repeat more than ${MAX_REPEATED_BYTES} bytes of what their resources say`,
        );
      }
      if (resources.get(resource, RESOURCE.from) !== 0) continue;
      for (const key of ['type', 'name', 'module'] as const) {
        const at = count === 0 ? 0 : this.#inResource(resource, RESOURCE[key]);
        if (at !== 0) this.#checkIndexed(key, at);
      }
      const provider = count === 0 ? 0 : this.#inResource(resource, RESOURCE.provider);
      if (provider !== 0 && endOfString(this.bytes, provider) - provider > MAX_STRING_BYTES) {
        throw this.#problem(provider, `"provider" has more than ${MAX_STRING_BYTES} bytes`);
      }
      const hasMode = count === 0 || this.#mode(resource) !== null;
      for (let row = first; row < first + count; row++) {
        if (hasMode && instances.get(row, INSTANCE.from) !== 0) continue;
        this.#checkIndexKey(row);
        if (hasMode && this.#hasStorableSchemaVersion(row)) continue;
        unfit.add(row);
        // Whether it may stay depends on the whole document.
        instances.set(row, INSTANCE.length, 0);
        resources.set(resource, RESOURCE.length, 0);
      }
    }
    if (unfit.size === 0) return;
    const last = new Map<string, number>();
    for (const row of this.rows()) last.set(this.instanceAt(row).address, row);
    for (const row of last.values()) if (unfit.has(row)) this.#refuse(row);
  }

  #refuse(row: number): never {
    const resource = this.index.instances.get(row, INSTANCE.resource);
    if (this.#mode(resource) !== null) {
      const at = this.#inInstance(row, INSTANCE.schemaVersion);
      throw this.#problem(at, '"schema_version" must be an integer of 32 bits');
    }
    const mode = this.#inResource(resource, RESOURCE.mode);
    if (mode !== 0) throw this.#problem(mode, 'the mode of a resource must be "managed" or "data"');
    throw new UnsupportedStateDocumentError(`$.resources[${resource}]`, 'a resource has no "mode"');
  }

  /** How many bytes of a resource stand in the row of each of its instances, as they are spelled. */
  #sharedBytes(resource: number): number {
    const members = [RESOURCE.mode, RESOURCE.type, RESOURCE.name, RESOURCE.provider, RESOURCE.module];
    return members.reduce((sum, member) => {
      const at = this.#inResource(resource, member);
      return at === 0 ? sum : sum + endOfString(this.bytes, at) - at;
    }, 0);
  }

  #hasStorableSchemaVersion(row: number): boolean {
    const at = this.#inInstance(row, INSTANCE.schemaVersion);
    const version = at === 0 ? 0n : (integerAt(this.bytes, at) ?? 0n);
    return version <= INT32_MAX && version >= -INT32_MAX - 1n;
  }

  #checkIndexKey(row: number): void {
    const at = this.#inInstance(row, INSTANCE.indexKey);
    if (at === 0 || integerAt(this.bytes, at) !== null) return;
    if (this.bytes[at] !== QUOTE) {
      throw this.#problem(at, '"index_key" must be an integer of 64 bits or a string');
    }
    this.#checkIndexed('index_key', at);
  }

  #checkIndexed(key: string, at: number): void {
    if (endOfString(this.bytes, at) - at > MAX_INDEXED_BYTES) {
      throw this.#problem(at, `"${key}" ${TOO_LONG_FOR_AN_INDEX}`);
    }
  }

  /** Finding the path walks the document again: to be asked for one problem and not for each. */
  #problem(at: number, reason: string): UnsupportedStateDocumentError {
    return new UnsupportedStateDocumentError(jsonPathAt(this.bytes, at), reason);
  }

  /** The outputs in document order. Of two with one name the later counts. */
  *outputs(): Generator<StateOutput> {
    const table = this.index.outputs;
    const rows = new Map<string, number>();
    for (let row = 0; row < table.length; row++) rows.set(this.#string(table.get(row, OUTPUT.name)), row);
    for (const [name, row] of rows) {
      yield {
        name,
        value: this.#slice(table.get(row, OUTPUT.value), table.get(row, OUTPUT.valueEnd), NULL),
        type: this.#slice(table.get(row, OUTPUT.type), table.get(row, OUTPUT.typeEnd), DYNAMIC),
        sensitive: table.get(row, OUTPUT.sensitive) !== 0,
      };
    }
  }

  /** How many resource instances there are, deposed ones included. */
  get instanceCount(): number {
    const { resources, resourceCount } = this.index;
    let count = 0;
    for (let resource = 0; resource < resourceCount; resource++)
      count += resources.get(resource, RESOURCE.count);
    return count;
  }

  /** How many instances of managed resources there are, deposed ones included: what Kilolock's quotas count. */
  get managedInstances(): number {
    const { resources, resourceCount } = this.index;
    let count = 0;
    for (let resource = 0; resource < resourceCount; resource++) {
      const instances = resources.get(resource, RESOURCE.count);
      if (instances > 0 && this.#mode(resource) !== 'data') count += instances;
    }
    return count;
  }

  /** The resource instances in document order, deposed ones included, read one at a time. */
  *instances(): Generator<ResourceInstance> {
    for (const row of this.rows()) yield this.instanceAt(row);
  }

  /** The rows of {@link index} that are instances, in document order. */
  *rows(): Generator<number> {
    const { resources, resourceCount } = this.index;
    for (let resource = 0; resource < resourceCount; resource++) {
      const first = resources.get(resource, RESOURCE.first);
      const end = first + resources.get(resource, RESOURCE.count);
      for (let row = first; row < end; row++) yield row;
    }
  }

  /** The instance of one of these rows. */
  instanceAt(row: number): ResourceInstance {
    const { resources, instances } = this.index;
    const resource = instances.get(row, INSTANCE.resource);
    const { mode, type, name, provider, modulePath } = this.#resourceAt(resource);
    const index = this.#indexKey(this.#inInstance(row, INSTANCE.indexKey));
    return {
      address: resourceAddress(modulePath, mode, type, name, index),
      mode,
      type,
      name,
      provider,
      modulePath,
      indexKind: index.kind,
      indexValue: index.value,
      schemaVersion: this.schemaVersionAt(row),
      attributes: this.#slice(
        this.#inInstance(row, INSTANCE.attributes),
        this.#inInstance(row, INSTANCE.attributesEnd),
        EMPTY_OBJECT,
      ),
      sensitivePaths: this.#slice(
        this.#inInstance(row, INSTANCE.sensitive),
        this.#inInstance(row, INSTANCE.sensitiveEnd),
        EMPTY_ARRAY,
      ),
      dependencies: this.#dependencies(row),
      deposed: instances.get(row, INSTANCE.deposed) !== 0,
      place: { resource, instance: row - resources.get(resource, RESOURCE.first) },
    };
  }

  /** The `schemaVersion` of this instance alone. */
  schemaVersionAt(row: number): number {
    const at = this.#inInstance(row, INSTANCE.schemaVersion);
    // `-0` is an integer to Go.
    return at === 0 ? 0 : Number(this.#scalar(at)) + 0;
  }

  #resourceAt(row: number): ResourceMembers {
    if (this.#lastResource?.row !== row) {
      this.#lastResource = {
        row,
        mode: this.#mode(row) ?? 'managed',
        type: this.#string(this.#inResource(row, RESOURCE.type)),
        name: this.#string(this.#inResource(row, RESOURCE.name)),
        provider: this.#string(this.#inResource(row, RESOURCE.provider)),
        modulePath: this.#string(this.#inResource(row, RESOURCE.module)),
      };
    }
    return this.#lastResource;
  }

  /** Null for what no row of the database could hold. */
  #mode(resource: number): 'managed' | 'data' | null {
    const mode = this.#string(this.#inResource(resource, RESOURCE.mode));
    return mode === 'managed' || mode === 'data' ? mode : null;
  }

  /** The position in the document that a column of a resource holds; 0 when it holds none. */
  #inResource(resource: number, column: number): number {
    const offset = this.index.resources.get(resource, column);
    return offset === 0 ? 0 : offset + this.index.resources.get(resource, RESOURCE.start);
  }

  /** The position in the document that a column of an instance holds; 0 when it holds none. */
  #inInstance(row: number, column: number): number {
    const offset = this.index.instances.get(row, column);
    return offset === 0 ? 0 : this.#startOf(row) + offset;
  }

  #startOf(row: number): number {
    const { resources, instances } = this.index;
    const resource = instances.get(row, INSTANCE.resource);
    return resources.get(resource, RESOURCE.start) + instances.get(row, INSTANCE.start);
  }

  #indexKey(at: number): ResourceIndex {
    if (at === 0) return NO_INDEX;
    if (this.bytes[at] === QUOTE) return stringIndex(this.#string(at));
    return { kind: 'int', value: this.#scalar(at) };
  }

  #scalar(at: number): string {
    return this.bytes.toString('latin1', at, endOfScalar(this.bytes, at));
  }

  #string(at: number): string {
    return at === 0 ? '' : decodeString(this.bytes, at, endOfString(this.bytes, at));
  }

  #dependencies(row: number): Buffer {
    const at = this.#inInstance(row, INSTANCE.dependencies);
    const end = this.#inInstance(row, INSTANCE.dependenciesEnd);
    const earlier = this.index.earlierDependencies.get(row);
    if (earlier === undefined) return this.#slice(at, end, EMPTY_ARRAY);
    const strings: number[] = [];
    for (const list of earlier) this.#findStrings(this.#startOf(row) + list, strings);
    strings.length = this.#findStrings(at, strings);
    const list = Buffer.allocUnsafe(
      strings.reduce((sum, string) => sum + this.#lengthOfString(string) + 1, 2),
    );
    let used = list.write('[');
    for (const string of strings) {
      if (used > 1) used += list.write(',', used);
      if (string === 0) used += list.write('""', used);
      else used += this.bytes.copy(list, used, string, endOfString(this.bytes, string));
    }
    return list.subarray(0, used + list.write(']', used));
  }

  /** @param at 0: the string is empty. */
  #lengthOfString(at: number): number {
    return at === 0 ? 2 : endOfString(this.bytes, at) - at;
  }

  /** Notes where the strings of the list at `at` stand, where a null leaves what is there; returns how many it has. */
  #findStrings(at: number, strings: number[]): number {
    let count = 0;
    walkArray(this.bytes, at, (value) => {
      strings[count] = this.bytes[value] === QUOTE ? value : (strings[count] ?? 0);
      count += 1;
      return endOfScalar(this.bytes, value);
    });
    return count;
  }

  #slice(start: number, end: number, absent: Buffer): Buffer {
    return start === 0 ? absent : this.bytes.subarray(start, end);
  }
}

type ResourceMembers = Pick<ResourceInstance, 'mode' | 'type' | 'name' | 'provider' | 'modulePath'> & {
  readonly row: number;
};
