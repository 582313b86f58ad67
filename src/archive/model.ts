/**
 * The history an archive holds. Times are RFC 3339 in UTC with exactly six fractional digits
 * (`2026-03-02T10:00:00.000118Z`). Ids are lower-case UUIDs of the backend the history came from; they link
 * the parts of one archive and mean nothing elsewhere. `null` and `''` are different values everywhere.
 */

/** Identity and settings of the state as found when it was archived (data model 1.1, 1.13). */
export interface ArchivedState {
  id: string;
  /** The name a person uses: the stored name without workspace and environment. */
  label: string;
  /** The name as the database stores it. */
  name: string;
  workspace: string;
  environment: string;
  /** First lineage ever seen for the state; single versions may carry another (data model 2.4). */
  lineage: string | null;
  lifecycleStatus: 'active' | 'suspended' | 'archived';
  createdAt: string;
  updatedAt: string;
  /** Serial of the current version, which need not be the highest. */
  currentSerial: bigint;
  currentVersionId: string;
  /** Lock policy of the source. A destination keeps it unless its environment prescribes one. */
  exclusiveLocks: boolean;
  coexistenceMode: 'warn' | 'strict';
}

/** What the history says of one version besides its raw state (data model 1.2). */
export interface ArchivedVersion {
  id: string;
  /** 0 to 2^63 - 2, unique in the history; gaps are legal. */
  serial: bigint;
  terraformVersion: string | null;
  /** Free text with meaning to Kilolock (`http_backend`, `refresh`, `resource-move:…`); kept as it is. */
  source: string;
  createdAt: string;
  createdBy: string | null;
}

/** A name given to one version (data model 4). */
export interface ArchivedTag {
  tag: string;
  serial: bigint;
  description: string | null;
  actor: string;
  createdAt: string;
  updatedAt: string;
}

/** An audit event of the state (data model 6). */
export interface ArchivedEvent {
  id: string;
  kind: string;
  /** Serial of the version the event is linked to, or null. */
  serial: bigint | null;
  actor: string | null;
  /** JSON text, opaque: never parsed and written again, so that its numbers stay what they were. */
  payload: string;
  createdAt: string;
}

/** The span of serials over which one resource instance kept one content (data model 1.4, 3.7). */
export interface ArchivedResource {
  address: string;
  /** First serial the content was seen at. */
  createSerial: bigint;
  /** Serial it was gone at, or null while it lasts. */
  deleteSerial: bigint | null;
  attributesHash: string;
  /** Version of the provider's schema for this resource, a 32-bit integer. */
  schemaVersion: number;
  createdAt: string;
}

/** How many of each kind an archive holds. */
export interface ArchiveCounts {
  versions: number;
  tags: number;
  events: number;
  resources: number;
}

/** Contents of `manifest.json`. */
export interface ArchiveManifest {
  state: ArchivedState;
  counts: ArchiveCounts;
  /** In ascending serial order. */
  versions: readonly ArchivedVersion[];
  /** Features a reader must know to read this archive rightly. */
  requiredFeatures: readonly string[];
  /**
   * `jsonb` when the raw states are the text that PostgreSQL's jsonb gives out, so that storing them changes no byte; null
   * when the archive does not say so.
   */
  rawStateText: 'jsonb' | null;
  /** Base-2 logarithm of the zstd window the file was written with, or null when the archive does not say it. */
  zstdWindowLog: number | null;
}

/**
 * Contents of `export.json`: the one member that differs between two exports of an unchanged state, but for the sums over it and
 * the signature over those.
 */
export interface ExportRecord {
  exportedAt: string;
  /** Who asked for the export: a claim of the exporting backend, for people to read. */
  exportedBy: string;
  source: { workspace: string; environment: string; stateName: string };
  tool: { name: string; version: string };
}

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
