import { z } from 'zod';
import { spanFault, tagNameFault } from './consistency.ts';
import { ArchiveError, quoted } from './errors.ts';
import { count, eventKind, name, payload, serial, sha256, text, time, uuid } from './fields.ts';
import {
  ARCHIVE_FORMAT,
  type ArchiveLimits,
  MAX_ZSTD_WINDOW_LOG,
  MEMBER,
  MIN_ZSTD_WINDOW_LOG,
  SUPPORTED_FEATURES,
} from './format.ts';
import type {
  ArchivedEvent,
  ArchivedResource,
  ArchivedState,
  ArchivedTag,
  ArchivedVersion,
  ArchiveManifest,
  ExportRecord,
} from './model.ts';
import { type JsonPlace, parseOwnJson } from './own-json.ts';
import { type Form, list, optional, record } from './record-form.ts';

/** A value read from a member, and how many fields beside it this reader does not know. */
export interface Decoded<T> {
  value: T;
  unknownFields: number;
}

// ---- the JSON of each member; docs/archive-format.md says what every field means ----

const times = { created_at: time, updated_at: time };
const formatFields = { archive_format: z.string() };
const featureFields = { required_features: z.array(z.string()) };

const state = record({
  id: uuid,
  label: name,
  name,
  workspace: text,
  environment: text,
  lineage: uuid.nullable(),
  lifecycle_status: z.enum(['active', 'suspended', 'archived']),
  ...times,
  current_serial: serial,
  current_version_id: uuid,
  exclusive_locks: z.boolean(),
  coexistence_mode: z.enum(['warn', 'strict']),
});

const version = record({
  id: uuid,
  serial,
  terraform_version: text.nullable(),
  source: text,
  created_at: time,
  created_by: text.nullable(),
});

const manifest = record({
  ...formatFields,
  ...featureFields,
  state,
  counts: record({ versions: count, tags: count, events: count, resources: count }),
  versions: list(version),
  raw_state_text: optional(z.enum(['jsonb'])),
  zstd_window_log: optional(z.int().min(MIN_ZSTD_WINDOW_LOG).max(MAX_ZSTD_WINDOW_LOG)),
});

const manifestState = record({ state });
const format = record(formatFields);
const features = record(featureFields);

const tag = record({ tag: text, serial, description: text.nullable(), actor: text, ...times });

const tags = record({ tags: list(tag) });

const event = record({
  id: uuid,
  kind: eventKind,
  serial: serial.nullable(),
  actor: text.nullable(),
  payload,
  created_at: time,
});

const resource = record({
  address: text,
  create_serial: serial,
  delete_serial: serial.nullable(),
  attributes_hash: sha256,
  schema_version: z.int32(),
  created_at: time,
});

const exportRecord = record({
  exported_at: time,
  exported_by: text,
  source: record({ workspace: text, environment: text, state_name: text }),
  tool: record({ name: text, version: text }),
});

// The envelope of DSSE 1.0; fields it does not name are left alone.
const base64 = z.string().regex(/^[A-Za-z0-9+/_-]+={0,2}$/, 'is not base64');
const envelope = record({
  payloadType: name,
  payload: base64,
  signatures: z.array(z.object({ sig: base64, keyid: text.optional() })).min(1, 'has no signature'),
});

// ---- writing ----

/** Bytes of `manifest.json`. */
export function encodeManifest(value: ArchiveManifest): Uint8Array {
  return prettyJson(manifest, { archiveFormat: ARCHIVE_FORMAT, ...value });
}

/** Bytes of `tags.json`, for tags in the order they are to stand in. */
export function encodeTags(value: readonly ArchivedTag[]): Uint8Array {
  return prettyJson(tags, { tags: value });
}

/** One line of `events.ndjson`, its newline included. */
export function encodeEvent(value: ArchivedEvent): string {
  return jsonLine(event, value);
}

/** One line of `resources.ndjson`, its newline included. */
export function encodeResource(value: ArchivedResource): string {
  return jsonLine(resource, value);
}

/** Bytes of `export.json`. */
export function encodeExportRecord(value: ExportRecord): Uint8Array {
  return prettyJson(exportRecord, value);
}

function prettyJson<T>(form: Form<T>, value: T): Uint8Array {
  return Buffer.from(`${JSON.stringify(form.encode(value), null, 2)}\n`);
}

function jsonLine<T>(form: Form<T>, value: T): string {
  return `${JSON.stringify(form.encode(value))}\n`;
}

// ---- what a history may hold that is to be archived ----

/**
 * The first field in which a state, a version, a tag, an event or a span breaks a rule of the format, and the rule, as a
 * clause (`created_at is not …`); null when an archive can hold it. The same rules are a reader's.
 */
export const stateFault = faultOf<ArchivedState>(state);

/** See {@link stateFault}; of the state's times alone. */
export const stateTimesFault = faultOf<Pick<ArchivedState, 'createdAt' | 'updatedAt'>>(record(times));

/** See {@link stateFault}. */
export const versionFault = faultOf<ArchivedVersion>(version);

/** See {@link stateFault}; what a tag may be called is among the rules (data model 1.3). */
export const tagFault = faultOf<ArchivedTag>(tag, (value) => tagNameFault(value.tag));

/** See {@link stateFault}. */
export const eventFault = faultOf<ArchivedEvent>(event);

/** See {@link stateFault}. */
export const resourceFault = faultOf<ArchivedResource>(resource, spanFault);

function faultOf<T>(form: Form<T>, ruleBeside: (value: T) => string | null = () => null) {
  return (value: T): string | null => {
    const { error } = form.schema.safeParse(form.encode(value));
    return error === undefined ? ruleBeside(value) : firstIssue(error).join(' ');
  };
}

// ---- reading ----

/**
 * Reads `manifest.json`: the format and the required features first, so that an archive of another version is
 * called that and not a broken one.
 *
 * @throws ArchiveError ARCHIVE_UNSUPPORTED_FORMAT, ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT.
 */
export function decodeManifest(bytes: Uint8Array, limits: ArchiveLimits): Decoded<ArchiveManifest> {
  const { json, place } = readSupported(bytes, limits);
  const { archiveFormat: _, ...value } = validate(manifest, json, place);
  return { value, unknownFields: manifest.unknownFields(json) };
}

/** Likewise reads the state out of what may be a part of the manifest. */
export function decodeManifestState(bytes: Uint8Array, limits: ArchiveLimits): ArchivedState {
  const { json, place } = readSupported(bytes, limits);
  return validate(manifestState, json, place).state;
}

function readSupported(
  bytes: Uint8Array,
  limits: ArchiveLimits,
): { readonly json: unknown; readonly place: JsonPlace } {
  const place = wholeMember(MEMBER.manifest, limits);
  const { value: json, checkKeys } = parseOwnJson(bytes, place);
  const { archiveFormat } = validate(format, json, place);
  if (archiveFormat !== ARCHIVE_FORMAT) {
    throw unsupported(`is in the format ${quoted(archiveFormat)}; this reader knows "${ARCHIVE_FORMAT}"`);
  }
  const { requiredFeatures } = validate(features, json, place);
  const missing = requiredFeatures.filter((feature) => !SUPPORTED_FEATURES.includes(feature));
  if (missing.length > 0) {
    throw unsupported(
      `requires ${listed(missing.slice(0, 10))}; ` +
        `this reader of "${ARCHIVE_FORMAT}" supports ${listed(SUPPORTED_FEATURES) || 'no features'}`,
    );
  }
  checkKeys();
  return { json, place };
}

function unsupported(what: string): ArchiveError {
  return new ArchiveError('ARCHIVE_UNSUPPORTED_FORMAT', `the archive ${what}`, { member: MEMBER.manifest });
}

function listed(names: readonly string[]): string {
  return names.map(quoted).join(', ');
}

/** Reads `tags.json`. @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT. */
export function decodeTags(bytes: Uint8Array, limits: ArchiveLimits): Decoded<readonly ArchivedTag[]> {
  const { value, unknownFields } = read(tags, bytes, wholeMember(MEMBER.tags, limits));
  return { value: value.tags, unknownFields };
}

/**
 * Reads the line of this number, from 1, of `events.ndjson`.
 *
 * @throws ArchiveError ARCHIVE_CORRUPT, ARCHIVE_UNSAFE, ARCHIVE_TOO_LARGE or ARCHIVE_INCONSISTENT.
 */
export function decodeEvent(line: Uint8Array, number: number): Decoded<ArchivedEvent> {
  return read(event, line, oneLine(MEMBER.events, number));
}

/** Reads a line of `resources.ndjson`, as {@link decodeEvent} does. */
export function decodeResource(line: Uint8Array, number: number): Decoded<ArchivedResource> {
  return read(resource, line, oneLine(MEMBER.resources, number));
}

/** Reads `export.json`. @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT. */
export function decodeExportRecord(bytes: Uint8Array, limits: ArchiveLimits): Decoded<ExportRecord> {
  return read(exportRecord, bytes, wholeMember(MEMBER.exportRecord, limits));
}

/** Checks that an attestation is a DSSE envelope with a signature; whose it is, and whether it is right, is not its concern. */
export function checkAttestation(bytes: Uint8Array, limits: ArchiveLimits): void {
  read(envelope, bytes, wholeMember(MEMBER.attestation, limits));
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

function read<T>(form: Form<T>, bytes: Uint8Array, place: JsonPlace): Decoded<T> {
  const { value: json, checkKeys } = parseOwnJson(bytes, place);
  checkKeys();
  return { value: validate(form, json, place), unknownFields: form.unknownFields(json) };
}

function validate<T>({ schema }: Pick<Form<T>, 'schema'>, json: unknown, { member, where }: JsonPlace): T {
  const { data, error } = schema.safeParse(json);
  if (error === undefined) return data;
  const id = z.object({ id: uuid }).safeParse(json).data?.id;
  const which = id === undefined ? '' : ` (${id})`;
  throw new ArchiveError('ARCHIVE_INCONSISTENT', `${where}${which}: ${firstIssue(error).join(': ')}`, {
    member,
  });
}

/** Where the first thing that is wrong stands, and what it is. */
function firstIssue(error: z.ZodError): [field: string, rule: string] {
  const issue = error.issues[0];
  return [issue?.path.map(String).join('.') || 'the whole', issue?.message ?? 'invalid'];
}
