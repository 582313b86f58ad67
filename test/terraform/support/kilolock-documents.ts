import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A text, or its pieces, each with how often it is repeated. */
type Packed = string | readonly (string | number)[];
/** A text, or the digest of a long one. */
type Column = string | number | boolean | null | { readonly sha256: string };

/** A document posted to a real Kilolock, and what became of it. */
export interface KilolockCase {
  readonly name: string;
  readonly document: Packed;
  /** The HTTP status of the refusal: 400 by Kilolock itself, 500 by its database. */
  readonly refused?: number;
  /** The rows of `resources`, by address: the columns of {@link RESOURCE_COLUMNS}. */
  readonly rows: readonly (readonly Column[])[];
  /** The rows of `outputs`, by name: name, value, value_type, sensitive. */
  readonly outputs: readonly (readonly Column[])[];
  /** `raw_state::text`, unless it is very long. */
  readonly stored?: Packed;
  /** `rows` and `outputs` of the stored text, posted again, where they differ; null: it was refused. */
  readonly again?: readonly (readonly Column[])[] | null;
  readonly againOutputs?: readonly (readonly Column[])[];
  /** `states.lineage`, when it is not null. */
  readonly lineage?: string;
}

/**
 * What Kilolock made of documents of many shapes. Recorded from `kld` on PostgreSQL 15: every document posted to a state
 * of its own, and those that its stored text stands for without loss once more to one state, in this order.
 */
const recorded = JSON.parse(
  readFileSync(new URL('../../fixtures/kilolock-documents.json', import.meta.url), 'utf8'),
) as {
  readonly cases: readonly KilolockCase[];
  readonly history: {
    readonly documents: readonly string[];
    /** As `rows`, each with create_serial and delete_serial behind it. */
    readonly spans: readonly (readonly Column[])[];
  };
};

export const kilolockCases = recorded.cases;
export const kilolockHistory = recorded.history;

export const RESOURCE_COLUMNS = [
  'address',
  'mode',
  'type',
  'name',
  'provider',
  'module_path',
  'index_kind',
  'index_value',
  'attributes',
  'sensitive_paths',
  'dependencies_raw',
  'attributes_hash',
  'schema_version',
] as const;

export function unpack(packed: Packed): Buffer {
  if (typeof packed === 'string') return Buffer.from(packed);
  const pieces: string[] = [];
  for (let i = 0; i < packed.length; i += 2) pieces.push(String(packed[i]).repeat(Number(packed[i + 1])));
  return Buffer.from(pieces.join(''));
}

/** A column's value as the record holds it. */
export function recordedColumn(value: string | number | boolean | null): Column {
  if (typeof value !== 'string' || Buffer.byteLength(value) <= 700) return value;
  return { sha256: createHash('sha256').update(value).digest('hex') };
}
