import { z } from 'zod';
import { spanFault, tagNameFault } from './consistency.ts';
import { ArchiveError, quoted } from './errors.ts';
import { count, eventKind, name, payload, serial, sha256, text, time, uuid } from './fields.ts';
import {
  ARCHIVE_FORMAT,
  type ArchiveLimits,
  MEMBER,
  MIN_ZSTD_WINDOW_LOG,
  SUPPORTED_FEATURES,
  ZSTD_WINDOW_LOG,
} from './format.ts';
import type {
  ArchiveCounts,
  ArchivedEvent,
  ArchivedResource,
  ArchivedState,
  ArchivedTag,
  ArchivedVersion,
  ArchiveManifest,
  ExportRecord,
} from './model.ts';
import { type JsonPlace, parseOwnJson } from './own-json.ts';

/** A value read from a member, and how many fields beside it this reader does not know. */
export interface Decoded<T> {
  value: T;
  unknownFields: number;
}

// ---- the JSON of each member; docs/archive-format.md says what every field means ----

const stateFields = {
  id: uuid,
  label: name,
  name,
  workspace: text,
  environment: text,
  lineage: uuid.nullable(),
  lifecycle_status: z.enum(['active', 'suspended', 'archived']),
  created_at: time,
  updated_at: time,
  current_serial: serial,
  current_version_id: uuid,
  exclusive_locks: z.boolean(),
  coexistence_mode: z.enum(['warn', 'strict']),
};

const countFields = { versions: count, tags: count, events: count, resources: count };

const versionFields = {
  id: uuid,
  serial,
  terraform_version: text.nullable(),
  source: text,
  created_at: time,
  created_by: text.nullable(),
};

const tagFields = {
  tag: text,
  serial,
  description: text.nullable(),
  actor: text,
  created_at: time,
  updated_at: time,
};

const eventFields = {
  id: uuid,
  kind: eventKind,
  serial: serial.nullable(),
  actor: text.nullable(),
  payload,
  created_at: time,
};

const resourceFields = {
  address: text,
  create_serial: serial,
  delete_serial: serial.nullable(),
  attributes_hash: sha256,
  schema_version: z.int32(),
  created_at: time,
};

const exportFields = {
  exported_at: time,
  exported_by: text,
  source: z.object({ workspace: text, environment: text, state_name: text }),
  tool: z.object({ name: text, version: text }),
};

const stateSchema = z.object(stateFields);
const stateTimesSchema = stateSchema.pick({ created_at: true, updated_at: true });
const versionSchema = z.object(versionFields);
const formatSchema = z.object({ archive_format: z.string() });
const featuresSchema = z.object({ required_features: z.array(z.string()) });
const manifestSchema = z.object({
  ...formatSchema.shape,
  ...featuresSchema.shape,
  state: stateSchema,
  counts: z.object(countFields),
  versions: z.array(versionSchema),
  raw_state_text: z.enum(['jsonb']).optional(),
  zstd_window_log: z.int().min(MIN_ZSTD_WINDOW_LOG).max(ZSTD_WINDOW_LOG).optional(),
});
const tagSchema = z.object(tagFields);
const tagsSchema = z.object({ tags: z.array(tagSchema) });
const eventSchema = z.object(eventFields);
const resourceSchema = z.object(resourceFields);
const exportSchema = z.object(exportFields);

// The envelope of DSSE 1.0; fields it does not name are left alone.
const base64 = z.string().regex(/^[A-Za-z0-9+/_-]+={0,2}$/, 'is not base64');
const envelopeSchema = z.object({
  payloadType: name,
  payload: base64,
  signatures: z.array(z.object({ sig: base64, keyid: text.optional() })).min(1, 'has no signature'),
});

// ---- writing ----

/** Bytes of `manifest.json`. */
export function encodeManifest(manifest: ArchiveManifest): Uint8Array {
  return prettyJson({
    archive_format: ARCHIVE_FORMAT,
    counts: encodeCounts(manifest.counts),
    raw_state_text: manifest.rawStateText ?? undefined,
    required_features: manifest.requiredFeatures,
    state: encodeState(manifest.state),
    versions: manifest.versions.map(encodeVersion),
    zstd_window_log: manifest.zstdWindowLog ?? undefined,
  });
}

/** Bytes of `tags.json`, for tags in the order they are to stand in. */
export function encodeTags(tags: readonly ArchivedTag[]): Uint8Array {
  return prettyJson({ tags: tags.map(encodeTag) });
}

/** One line of `events.ndjson`, its newline included. */
export function encodeEvent(event: ArchivedEvent): string {
  return jsonLine(eventJson(event));
}

/** One line of `resources.ndjson`, its newline included. */
export function encodeResource(resource: ArchivedResource): string {
  return jsonLine(resourceJson(resource));
}

/** Bytes of `export.json`. */
export function encodeExportRecord(record: ExportRecord): Uint8Array {
  return prettyJson({
    exported_at: record.exportedAt,
    exported_by: record.exportedBy,
    source: {
      environment: record.source.environment,
      state_name: record.source.stateName,
      workspace: record.source.workspace,
    },
    tool: { name: record.tool.name, version: record.tool.version },
  });
}

function encodeTag(tag: ArchivedTag) {
  return {
    actor: tag.actor,
    created_at: tag.createdAt,
    description: tag.description,
    serial: String(tag.serial),
    tag: tag.tag,
    updated_at: tag.updatedAt,
  };
}

function eventJson(event: ArchivedEvent) {
  return {
    actor: event.actor,
    created_at: event.createdAt,
    id: event.id,
    kind: event.kind,
    payload: event.payload,
    serial: decimal(event.serial),
  };
}

function resourceJson(resource: ArchivedResource) {
  return {
    address: resource.address,
    attributes_hash: resource.attributesHash,
    create_serial: String(resource.createSerial),
    created_at: resource.createdAt,
    delete_serial: decimal(resource.deleteSerial),
    schema_version: resource.schemaVersion,
  };
}

function encodeCounts({ events, resources, tags, versions }: ArchiveCounts) {
  return { events, resources, tags, versions };
}

function encodeState(state: ArchivedState) {
  return {
    coexistence_mode: state.coexistenceMode,
    created_at: state.createdAt,
    current_serial: String(state.currentSerial),
    current_version_id: state.currentVersionId,
    environment: state.environment,
    exclusive_locks: state.exclusiveLocks,
    id: state.id,
    label: state.label,
    lifecycle_status: state.lifecycleStatus,
    lineage: state.lineage,
    name: state.name,
    updated_at: state.updatedAt,
    workspace: state.workspace,
  };
}

function encodeVersion(version: ArchivedVersion) {
  return {
    created_at: version.createdAt,
    created_by: version.createdBy,
    id: version.id,
    serial: String(version.serial),
    source: version.source,
    terraform_version: version.terraformVersion,
  };
}

function decimal(value: bigint | null): string | null {
  return value === null ? null : String(value);
}

/** Keys are written in the order given, which is sorted wherever this is called. */
function prettyJson(value: object): Uint8Array {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}

function jsonLine(value: object): string {
  return `${JSON.stringify(value)}\n`;
}

// ---- what a history may hold that is to be archived ----

/**
 * The first field in which a state, a version, a tag, an event or a span breaks a rule of the format, and the rule, as a
 * clause (`created_at is not …`); null when an archive can hold it. The same rules are a reader's.
 */
export function stateFault(state: ArchivedState): string | null {
  return faultOf(stateSchema, encodeState(state));
}

/** See {@link stateFault}; of the state's times alone. */
export function stateTimesFault(times: Pick<ArchivedState, 'createdAt' | 'updatedAt'>): string | null {
  return faultOf(stateTimesSchema, { created_at: times.createdAt, updated_at: times.updatedAt });
}

/** See {@link stateFault}. */
export function versionFault(version: ArchivedVersion): string | null {
  return faultOf(versionSchema, encodeVersion(version));
}

/** See {@link stateFault}; what a tag may be called is among the rules (data model 1.3). */
export function tagFault(tag: ArchivedTag): string | null {
  return faultOf(tagSchema, encodeTag(tag)) ?? tagNameFault(tag.tag);
}

/** See {@link stateFault}. */
export function eventFault(event: ArchivedEvent): string | null {
  return faultOf(eventSchema, eventJson(event));
}

/** See {@link stateFault}. */
export function resourceFault(resource: ArchivedResource): string | null {
  return faultOf(resourceSchema, resourceJson(resource)) ?? spanFault(resource);
}

function faultOf(schema: z.ZodType, json: unknown): string | null {
  const result = schema.safeParse(json);
  return result.success ? null : firstIssue(result.error).join(' ');
}

// ---- reading ----

/**
 * Reads `manifest.json`: the format and the required features first, so that an archive of another version is
 * called that and not a broken one.
 *
 * @throws ArchiveError ARCHIVE_UNSUPPORTED_FORMAT, ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT.
 */
export function decodeManifest(bytes: Uint8Array, limits: ArchiveLimits): Decoded<ArchiveManifest> {
  const place = wholeMember(MEMBER.manifest, limits);
  const { value: json, checkKeys } = parseOwnJson(bytes, place);
  const { archive_format: format } = validate(formatSchema, json, place);
  if (format !== ARCHIVE_FORMAT) {
    throw new ArchiveError(
      'ARCHIVE_UNSUPPORTED_FORMAT',
      `the archive is in the format ${quoted(format)}; this reader knows "${ARCHIVE_FORMAT}"`,
      { member: MEMBER.manifest },
    );
  }
  const { required_features: required } = validate(featuresSchema, json, place);
  const missing = required.filter((feature) => !SUPPORTED_FEATURES.includes(feature));
  if (missing.length > 0) {
    throw new ArchiveError(
      'ARCHIVE_UNSUPPORTED_FORMAT',
      `the archive requires ${missing.slice(0, 10).map(quoted).join(', ')}; ` +
        `this reader of "${ARCHIVE_FORMAT}" supports ${SUPPORTED_FEATURES.map(quoted).join(', ') || 'no features'}`,
      { member: MEMBER.manifest },
    );
  }
  checkKeys();
  const manifest = validate(manifestSchema, json, place);
  return {
    value: {
      state: {
        id: manifest.state.id,
        label: manifest.state.label,
        name: manifest.state.name,
        workspace: manifest.state.workspace,
        environment: manifest.state.environment,
        lineage: manifest.state.lineage,
        lifecycleStatus: manifest.state.lifecycle_status,
        createdAt: manifest.state.created_at,
        updatedAt: manifest.state.updated_at,
        currentSerial: manifest.state.current_serial,
        currentVersionId: manifest.state.current_version_id,
        exclusiveLocks: manifest.state.exclusive_locks,
        coexistenceMode: manifest.state.coexistence_mode,
      },
      counts: manifest.counts,
      versions: manifest.versions.map((version) => ({
        id: version.id,
        serial: version.serial,
        terraformVersion: version.terraform_version,
        source: version.source,
        createdAt: version.created_at,
        createdBy: version.created_by,
      })),
      requiredFeatures: manifest.required_features,
      rawStateText: manifest.raw_state_text ?? null,
      zstdWindowLog: manifest.zstd_window_log ?? null,
    },
    unknownFields:
      unknownFields(json, manifestSchema.shape) +
      unknownFields(at(json, 'state'), stateFields) +
      unknownFields(at(json, 'counts'), countFields) +
      unknownInEach(at(json, 'versions'), versionFields),
  };
}

/** Reads `tags.json`. @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT. */
export function decodeTags(bytes: Uint8Array, limits: ArchiveLimits): Decoded<ArchivedTag[]> {
  const { json, value } = read(tagsSchema, bytes, wholeMember(MEMBER.tags, limits));
  return {
    value: value.tags.map((tag) => ({
      tag: tag.tag,
      serial: tag.serial,
      description: tag.description,
      actor: tag.actor,
      createdAt: tag.created_at,
      updatedAt: tag.updated_at,
    })),
    unknownFields: unknownFields(json, tagsSchema.shape) + unknownInEach(at(json, 'tags'), tagFields),
  };
}

/**
 * Reads the line of this number, from 1, of `events.ndjson`.
 *
 * @throws ArchiveError ARCHIVE_CORRUPT, ARCHIVE_UNSAFE, ARCHIVE_TOO_LARGE or ARCHIVE_INCONSISTENT.
 */
export function decodeEvent(line: Uint8Array, number: number): Decoded<ArchivedEvent> {
  const { json, value: event } = read(eventSchema, line, oneLine(MEMBER.events, number));
  return {
    value: {
      id: event.id,
      kind: event.kind,
      serial: event.serial,
      actor: event.actor,
      payload: event.payload,
      createdAt: event.created_at,
    },
    unknownFields: unknownFields(json, eventFields),
  };
}

/** Reads a line of `resources.ndjson`, as {@link decodeEvent} does. */
export function decodeResource(line: Uint8Array, number: number): Decoded<ArchivedResource> {
  const { json, value: resource } = read(resourceSchema, line, oneLine(MEMBER.resources, number));
  return {
    value: {
      address: resource.address,
      createSerial: resource.create_serial,
      deleteSerial: resource.delete_serial,
      attributesHash: resource.attributes_hash,
      schemaVersion: resource.schema_version,
      createdAt: resource.created_at,
    },
    unknownFields: unknownFields(json, resourceFields),
  };
}

/** Reads `export.json`. @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT. */
export function decodeExportRecord(bytes: Uint8Array, limits: ArchiveLimits): Decoded<ExportRecord> {
  const { json, value: record } = read(exportSchema, bytes, wholeMember(MEMBER.exportRecord, limits));
  return {
    value: {
      exportedAt: record.exported_at,
      exportedBy: record.exported_by,
      source: {
        workspace: record.source.workspace,
        environment: record.source.environment,
        stateName: record.source.state_name,
      },
      tool: record.tool,
    },
    unknownFields:
      unknownFields(json, exportFields) +
      unknownFields(at(json, 'source'), exportFields.source.shape) +
      unknownFields(at(json, 'tool'), exportFields.tool.shape),
  };
}

/** Checks that an attestation is a DSSE envelope with a signature; whose it is, and whether it is right, is not its concern. */
export function checkAttestation(bytes: Uint8Array, limits: ArchiveLimits): void {
  read(envelopeSchema, bytes, wholeMember(MEMBER.attestation, limits));
}

/** Commas and brackets that an entry of the longest list may use: twice what the known fields need. */
const STRUCTURE_PER_ENTRY = 16;
const STRUCTURE_BESIDE_ENTRIES = 1024;

function wholeMember(member: string, { maxVersions }: ArchiveLimits): JsonPlace {
  return { member, where: member, maxEntries: maxVersions * STRUCTURE_PER_ENTRY + STRUCTURE_BESIDE_ENTRIES };
}

function oneLine(member: string, number: number): JsonPlace {
  return { member, where: `${member} line ${number}`, maxEntries: STRUCTURE_BESIDE_ENTRIES };
}

function read<Schema extends z.ZodType>(
  schema: Schema,
  bytes: Uint8Array,
  place: JsonPlace,
): { json: unknown; value: z.output<Schema> } {
  const { value: json, checkKeys } = parseOwnJson(bytes, place);
  checkKeys();
  return { json, value: validate(schema, json, place) };
}

function validate<Schema extends z.ZodType>(
  schema: Schema,
  json: unknown,
  { member, where }: JsonPlace,
): z.output<Schema> {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const id = at(json, 'id');
  const which = uuid.safeParse(id).success ? ` (${id})` : '';
  throw new ArchiveError('ARCHIVE_INCONSISTENT', `${where}${which}: ${firstIssue(result.error).join(': ')}`, {
    member,
  });
}

/** Where the first thing that is wrong stands, and what it is. */
function firstIssue(error: z.ZodError): [field: string, rule: string] {
  const issue = error.issues[0];
  return [issue?.path.map(String).join('.') || 'the whole', issue?.message ?? 'invalid'];
}

/** The value under a key of what the schema has already found to be an object. */
function at(json: unknown, key: string): unknown {
  return typeof json === 'object' && json !== null ? Reflect.get(json, key) : undefined;
}

function unknownInEach(list: unknown, known: object): number {
  if (!Array.isArray(list)) return 0;
  return list.reduce((sum: number, item: unknown) => sum + unknownFields(item, known), 0);
}

function unknownFields(json: unknown, known: object): number {
  if (typeof json !== 'object' || json === null) return 0;
  return Object.keys(json).filter((key) => !Object.hasOwn(known, key)).length;
}
