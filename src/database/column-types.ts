/**
 * @file What columns are in TypeScript, where it is not what the driver or Kysely would make of them. Nothing of the database
 * is ever rounded or parsed on the way.
 */

import type { ColumnType, Generated } from 'kysely';

/** A `bigint` column: a decimal string when read. */
export type BigIntColumn = ColumnType<string, bigint | string, bigint | string>;

/**
 * A `timestamptz` column: PostgreSQL's own text when read (`2026-03-02 10:00:00.000118+00`), microseconds kept.
 * Select it through `microsecondTime` to get RFC 3339.
 */
export type TimestampColumn = ColumnType<string, string, string>;

/** A `jsonb` column: PostgreSQL's text of the value when read, JSON text when written. */
export type JsonTextColumn = ColumnType<string, string, string>;

/** A `bytea` column. */
export type BytesColumn = ColumnType<Buffer, Uint8Array, Uint8Array>;

/** A column that may be NULL, and is when nothing is inserted. */
export type Nullable<Column> = [Column] extends [ColumnType<infer Read, infer Inserted, infer Updated>]
  ? ColumnType<Read | null, Inserted | null | undefined, Updated | null>
  : Column | null;

/** A column with a default. */
export type WithDefault<Column> = [Column] extends [ColumnType<infer Read, infer Inserted, infer Updated>]
  ? ColumnType<Read, Inserted | undefined, Updated>
  : Generated<Column>;
