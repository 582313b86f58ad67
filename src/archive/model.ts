import { z } from 'zod';
import { count, eventKind, name, payload, serial, sha256, text, time, uuid } from './fields.ts';
import { MAX_ZSTD_WINDOW_LOG, MIN_ZSTD_WINDOW_LOG } from './format.ts';
import { list, optional, record, type ValueOf } from './record-form.ts';

/**
 * @file The history an archive holds, by the names its fields have in JSON; docs/archive-format.md says what every field means.
 * Times are RFC 3339 in UTC with exactly six fractional digits (`2026-03-02T10:00:00.000118Z`). Ids are lower-case UUIDs of the
 * backend the history came from; they link the parts of one archive and mean nothing elsewhere. `null` and `''` are different
 * values everywhere.
 */

const times = { created_at: time, updated_at: time };

export const timesForm = record(times);

export const stateForm = record({
  id: uuid,
  /** The name a person uses: the stored name without workspace and environment. */
  label: name,
  /** The name as the database stores it. */
  name,
  workspace: text,
  environment: text,
  /** First lineage ever seen for the state; single versions may carry another (data model 2.4). */
  lineage: uuid.nullable(),
  lifecycle_status: z.enum(['active', 'suspended', 'archived']),
  ...times,
  /** Serial of the current version, which need not be the highest. */
  current_serial: serial,
  current_version_id: uuid,
  /** Lock policy of the source. A destination keeps it unless its environment prescribes one. */
  exclusive_locks: z.boolean(),
  coexistence_mode: z.enum(['warn', 'strict']),
});

/** Identity and settings of the state as found when it was archived (data model 1.1, 1.13). */
export type ArchivedState = ValueOf<typeof stateForm>;

export const versionForm = record({
  id: uuid,
  /** 0 to 2^63 - 2, unique in the history; gaps are legal. */
  serial,
  terraform_version: text.nullable(),
  /** Free text with meaning to Kilolock (`http_backend`, `refresh`, `resource-move:…`); kept as it is. */
  source: text,
  created_at: time,
  created_by: text.nullable(),
});

/** What the history says of one version besides its raw state (data model 1.2). */
export type ArchivedVersion = ValueOf<typeof versionForm>;

export const tagForm = record({
  tag: text,
  serial,
  description: text.nullable(),
  actor: text,
  ...times,
});

/** A name given to one version (data model 4). */
export type ArchivedTag = ValueOf<typeof tagForm>;

export const eventForm = record({
  id: uuid,
  kind: eventKind,
  /** Serial of the version the event is linked to, or null. */
  serial: serial.nullable(),
  actor: text.nullable(),
  /** JSON text, opaque: never parsed and written again, so that its numbers stay what they were. */
  payload,
  created_at: time,
});

/** An audit event of the state (data model 6). */
export type ArchivedEvent = ValueOf<typeof eventForm>;

export const resourceForm = record({
  address: text,
  /** First serial the content was seen at. */
  create_serial: serial,
  /** Serial it was gone at, or null while it lasts. */
  delete_serial: serial.nullable(),
  attributes_hash: sha256,
  /** Version of the provider's schema for this resource. */
  schema_version: z.int32(),
  created_at: time,
});

/** The span of serials over which one resource instance kept one content (data model 1.4, 3.7). */
export type ArchivedResource = ValueOf<typeof resourceForm>;

export const manifestForm = record({
  archive_format: z.string(),
  /** Features a reader must know to read this archive rightly. */
  required_features: z.array(z.string()),
  state: stateForm,
  /** How many of each kind the archive holds. */
  counts: record({ versions: count, tags: count, events: count, resources: count }),
  /** In ascending serial order. */
  versions: list(versionForm),
  /**
   * `jsonb` when the raw states are the text that PostgreSQL's jsonb gives out, so that storing them changes no byte; null
   * when the archive does not say so.
   */
  raw_state_text: optional(z.enum(['jsonb'])),
  /** Base-2 logarithm of the zstd window the file was written with, or null when the archive does not say it. */
  zstd_window_log: optional(z.int().min(MIN_ZSTD_WINDOW_LOG).max(MAX_ZSTD_WINDOW_LOG)),
});

/** Contents of `manifest.json`. */
export type ArchiveManifest = ValueOf<typeof manifestForm>;

export type ArchiveCounts = ArchiveManifest['counts'];

export const exportRecordForm = record({
  exported_at: time,
  /** Who asked for the export: a claim of the exporting backend, for people to read. */
  exported_by: text,
  source: record({ workspace: text, environment: text, state_name: text }),
  tool: record({ name: text, version: text }),
});

/**
 * Contents of `export.json`: the one member that differs between two exports of an unchanged state, but for the sums over it and
 * the signature over those.
 */
export type ExportRecord = ValueOf<typeof exportRecordForm>;

/** One raw state on its way into an archive. */
export interface RawState {
  serial: bigint;
  /** Exact number of bytes `content` yields: a tar header stands before them. */
  byteLength: number;
  content: AsyncIterable<Uint8Array>;
}

/** How far somebody is with a history: the whole raw states that are done, and their bytes. */
export interface HistoryProgress {
  readonly versions: number;
  readonly bytes: bigint;
}

/** Digest and length of one version's raw bytes. */
export interface VersionDigest {
  serial: bigint;
  /** Lower-case hex. */
  sha256: string;
  byteLength: number;
}
