import { z } from 'zod';
import { spanFault, tagNameFault } from './consistency.ts';
import { ArchiveError, quoted } from './errors.ts';
import { count, eventKind, name, payload, serial, sha256, text, time, uuid } from './fields.ts';
import {
  ARCHIVE_FORMAT,
  type ArchiveLimits,
  MAX_SIGNATURES,
  MAX_ZSTD_WINDOW_LOG,
  MEMBER,
  MIN_ZSTD_WINDOW_LOG,
  REDACTED_FEATURE,
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
  signatures: z
    .array(z.object({ keyid: text.optional(), sig: base64 }))
    .min(1, 'has no signature')
    .max(MAX_SIGNATURES, `has more than ${MAX_SIGNATURES} signatures`),
});

// The statement of in-toto 1.0 that the envelope carries.
const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
const PREDICATE_TYPE = 'urn:kilolock-state-archive:export:v1';
const statementKind = record({ predicateType: z.string() });
const statement = record({
  _type: z.literal(STATEMENT_TYPE),
  subject: z.tuple([z.object({ name: z.literal(MEMBER.sums), digest: z.object({ sha256 }) })]),
  predicateType: z.literal(PREDICATE_TYPE),
  predicate: record({
    archive_format: z.literal(ARCHIVE_FORMAT),
    history_digest: sha256,
    state: record({ label: name, lineage: uuid.nullable(), current_serial: serial }),
    exported_at: time,
    exported_by: text,
  }),
});

/** The envelope that an attestation is. */
export interface Envelope {
  readonly payloadType: string;
  /** In base64. */
  readonly payload: string;
  /** Each in base64, with what it calls its key. */
  readonly signatures: readonly { readonly keyid?: string | undefined; readonly sig: string }[];
}

/** What is signed of an archive. */
export interface Statement {
  /** The digest of `SHA256SUMS`: of all other members by it. */
  readonly sumsSha256: string;
  readonly historyDigest: string;
  readonly state: Pick<ArchivedState, 'label' | 'lineage' | 'currentSerial'>;
  readonly exportedAt: string;
  readonly exportedBy: string;
}

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

/** Bytes of `attestation.dsse.json`. */
export function encodeEnvelope(value: Envelope): Uint8Array {
  return prettyJson(envelope, { ...value, signatures: [...value.signatures] });
}

/** Bytes of the statement that is signed. */
export function encodeStatement({ sumsSha256, ...predicate }: Statement): Buffer {
  return Buffer.from(
    jsonLine(statement, {
      Type: STATEMENT_TYPE,
      subject: [{ name: MEMBER.sums, digest: { sha256: sumsSha256 } }],
      predicateType: PREDICATE_TYPE,
      predicate: { archiveFormat: ARCHIVE_FORMAT, ...predicate },
    }),
  );
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
 * @param features those that are understood.
 * @throws ArchiveError ARCHIVE_UNSUPPORTED_FORMAT, ARCHIVE_REDACTED, ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT.
 */
export function decodeManifest(
  bytes: Uint8Array,
  limits: ArchiveLimits,
  features: readonly string[] = SUPPORTED_FEATURES,
): Decoded<ArchiveManifest> {
  const { json, place } = readSupported(bytes, limits, features);
  const { archiveFormat: _, ...value } = validate(manifest, json, place);
  return { value, unknownFields: manifest.unknownFields(json) };
}

/** Likewise reads the state out of what may be a part of the manifest. */
export function decodeManifestState(bytes: Uint8Array, limits: ArchiveLimits): ArchivedState {
  const { json, place } = readSupported(bytes, limits, SUPPORTED_FEATURES);
  return validate(manifestState, json, place).state;
}

function readSupported(
  bytes: Uint8Array,
  limits: ArchiveLimits,
  supported: readonly string[],
): { readonly json: unknown; readonly place: JsonPlace } {
  const place = wholeMember(MEMBER.manifest, limits);
  const { value: json, checkKeys } = parseOwnJson(bytes, place);
  const { archiveFormat } = validate(format, json, place);
  if (archiveFormat !== ARCHIVE_FORMAT) {
    throw unsupported(`is in the format ${quoted(archiveFormat)}; this reader knows "${ARCHIVE_FORMAT}"`);
  }
  const { requiredFeatures } = validate(features, json, place);
  const missing = requiredFeatures.filter((feature) => !supported.includes(feature));
  if (missing.length === 1 && missing[0] === REDACTED_FEATURE) {
    throw new ArchiveError(
      'ARCHIVE_REDACTED',
      'values were taken out of this archive for a hand-over: it can be looked into, and is not the history any more',
      MEMBER.manifest,
    );
  }
  if (missing.length > 0) {
    throw unsupported(
      `requires ${listed(missing.slice(0, 10))}; ` +
        `this reader of "${ARCHIVE_FORMAT}" supports ${listed(supported) || 'no features'}`,
    );
  }
  checkKeys();
  return { json, place };
}

function unsupported(what: string): ArchiveError {
  return new ArchiveError('ARCHIVE_UNSUPPORTED_FORMAT', `the archive ${what}`, MEMBER.manifest);
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

/**
 * Reads `attestation.dsse.json`; whose it is, and whether it is right, is not its concern.
 *
 * @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT, ARCHIVE_UNSAFE or ARCHIVE_INCONSISTENT.
 */
export function decodeEnvelope(bytes: Uint8Array, limits: ArchiveLimits): Envelope {
  return read(envelope, bytes, wholeMember(MEMBER.attestation, limits)).value;
}

/**
 * Reads the statement of an envelope.
 *
 * @returns null for one of another kind.
 * @throws ArchiveError when it is no statement.
 */
export function decodeStatement(payload: Uint8Array, limits: ArchiveLimits): Statement | null {
  const place = wholeMember(MEMBER.attestation, limits);
  if (read(statementKind, payload, place).value.predicateType !== PREDICATE_TYPE) return null;
  const { subject, predicate } = read(statement, payload, place).value;
  const { archiveFormat: _, ...rest } = predicate;
  return { sumsSha256: subject[0].digest.sha256, ...rest };
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
  throw new ArchiveError('ARCHIVE_INCONSISTENT', `${where}${which}: ${firstIssue(error).join(': ')}`, member);
}

/** Where the first thing that is wrong stands, and what it is. */
function firstIssue(error: z.ZodError): [field: string, rule: string] {
  const issue = error.issues[0];
  return [issue?.path.map(String).join('.') || 'the whole', issue?.message ?? 'invalid'];
}
