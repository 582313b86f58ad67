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
import { DEFAULT_STATE_DOCUMENT_LIMITS, type StateDocumentLimits } from './limits.ts';
import {
  type IndexKind,
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
  /** The document's own serial, from 0 to 2^63-1. It can differ from the serial it is stored under. */
  readonly serial: bigint;
  /** As spelled in the document, which PostgreSQL's uuid type need not print back; '' when absent. */
  readonly lineage: string;
  /** Null when absent, which is not the same as ''. */
  readonly terraformVersion: string | null;
  /** How many outputs there are. Two with one name are one. */
  readonly outputCount: number;
  /** The resource instances in document order, deposed ones included, read one at a time. */
  instances(): Iterable<ResourceInstance>;
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
}

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const EMPTY_OBJECT = Buffer.from('{}');
const EMPTY_ARRAY = Buffer.from('[]');

/**
 * Checks a whole state document in one pass over its bytes and gives access to its parts.
 *
 * Accepted is what Kilolock accepts and PostgreSQL can store: strict JSON in UTF-8 without a byte order
 * mark, NUL, or half surrogate pair, within `limits`, and a state of version 4 (data model 2.10, 3.4, trap
 * 3). Of duplicate keys the last counts, as in jsonb and Go. Attributes, outputs and every member that
 * Kilolock does not know are checked as JSON and otherwise left alone.
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
  return new IndexedStateDocument(bytes, index);
}

class IndexedStateDocument implements StateDocument {
  readonly bytes: Buffer;
  readonly serial: bigint;
  readonly lineage: string;
  readonly terraformVersion: string | null;
  readonly #index: StateIndex;

  constructor(bytes: Buffer, index: StateIndex) {
    this.bytes = bytes;
    this.serial = index.serial;
    this.lineage = index.lineage;
    this.terraformVersion = index.terraformVersion;
    this.#index = index;
  }

  get outputCount(): number {
    const table = this.#index.outputs;
    const names = new Set<string>();
    for (let row = 0; row < table.length; row++) names.add(this.#string(table.get(row, OUTPUT.name)));
    return names.size;
  }

  *instances(): Generator<ResourceInstance> {
    const table = this.#index.instances;
    let resourceRow = -1;
    let resource = NO_RESOURCE;
    for (let row = 0; row < table.length; row++) {
      if (table.get(row, INSTANCE.resource) !== resourceRow) {
        resourceRow = table.get(row, INSTANCE.resource);
        resource = this.#resource(resourceRow);
      }
      const { mode, type, name, provider, modulePath } = resource;
      const index = this.#indexKey(table.get(row, INSTANCE.indexKey));
      yield {
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
        dependencies: this.#strings(table.get(row, INSTANCE.dependencies)),
        deposed: table.get(row, INSTANCE.deposed) !== 0,
      };
    }
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
    return { kind: 'int', value: BigInt(this.#scalar(at)).toString() };
  }

  #integer(at: number): number {
    return at === 0 ? 0 : Number(this.#scalar(at));
  }

  #scalar(at: number): string {
    return this.bytes.toString('latin1', at, endOfScalar(this.bytes, at));
  }

  #string(at: number): string {
    return at === 0 ? '' : decodeString(this.bytes, at, endOfString(this.bytes, at));
  }

  #strings(at: number): string[] {
    const strings: string[] = [];
    if (at === 0) return strings;
    let p = skipWhitespace(this.bytes, at + 1);
    while (this.bytes[p] !== CLOSE_BRACKET) {
      const end = endOfString(this.bytes, p);
      strings.push(decodeString(this.bytes, p, end));
      p = skipWhitespace(this.bytes, end);
      if (this.bytes[p] === COMMA) p = skipWhitespace(this.bytes, p + 1);
    }
    return strings;
  }

  #slice(start: number, end: number, absent: Buffer): Buffer {
    return start === 0 ? absent : this.bytes.subarray(start, end);
  }
}

type ResourceIdentity = Pick<ResourceInstance, 'mode' | 'type' | 'name' | 'provider' | 'modulePath'>;

const NO_RESOURCE: ResourceIdentity = { mode: 'managed', type: '', name: '', provider: '', modulePath: '' };
