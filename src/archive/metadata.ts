import { z } from 'zod';
import { ArchiveError, quoted } from './errors.ts';
import { count, name, serial, text, time, uuid } from './fields.ts';
import { ARCHIVE_FORMAT, type ArchiveLimits, MEMBER, SUPPORTED_FEATURES } from './format.ts';
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
  kind: text,
  serial: serial.nullable(),
  actor: text.nullable(),
  payload: text.refine(isJson, 'is not JSON text'),
  created_at: time,
};

const resourceFields = {
  address: text,
  create_serial: serial,
  delete_serial: serial.nullable(),
  attributes_hash: text,
  schema_version: z.int32(),
  created_at: time,
};

const exportFields = {
  exported_at: time,
  exported_by: text,
  source: z.object({ workspace: text, environment: text, state_name: text }),
  tool: z.object({ name: text, version: text }),
};

const headSchema = z.object({ archive_format: z.string(), required_features: z.array(z.string()) });
const manifestSchema = headSchema.extend({
  state: z.object(stateFields),
  counts: z.object(countFields),
  versions: z.array(z.object(versionFields)),
});
const tagsSchema = z.object({ tags: z.array(z.object(tagFields)) });
const eventSchema = z.object(eventFields);
const resourceSchema = z.object(resourceFields);
const exportSchema = z.object(exportFields);

// ---- writing ----

/** Bytes of `manifest.json`. */
export function encodeManifest(manifest: ArchiveManifest): Uint8Array {
  return prettyJson({
    archive_format: ARCHIVE_FORMAT,
    counts: encodeCounts(manifest.counts),
    required_features: manifest.requiredFeatures,
    state: encodeState(manifest.state),
    versions: manifest.versions.map(encodeVersion),
  });
}

/** Bytes of `tags.json`, for tags in the order they are to stand in. */
export function encodeTags(tags: readonly ArchivedTag[]): Uint8Array {
  return prettyJson({
    tags: tags.map((tag) => ({
      actor: tag.actor,
      created_at: tag.createdAt,
      description: tag.description,
      serial: String(tag.serial),
      tag: tag.tag,
      updated_at: tag.updatedAt,
    })),
  });
}

/** One line of `events.ndjson`, its newline included. */
export function encodeEvent(event: ArchivedEvent): string {
  return jsonLine({
    actor: event.actor,
    created_at: event.createdAt,
    id: event.id,
    kind: event.kind,
    payload: event.payload,
    serial: decimal(event.serial),
  });
}

/** One line of `resources.ndjson`, its newline included. */
export function encodeResource(resource: ArchivedResource): string {
  return jsonLine({
    address: resource.address,
    attributes_hash: resource.attributesHash,
    create_serial: String(resource.createSerial),
    created_at: resource.createdAt,
    delete_serial: decimal(resource.deleteSerial),
    schema_version: resource.schemaVersion,
  });
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

// ---- reading ----

/**
 * Reads `manifest.json`: the format and the required features first, so that an archive of another version is
 * called that and not a broken one.
 *
 * @throws ArchiveError ARCHIVE_UNSUPPORTED_FORMAT, ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT.
 */
export function decodeManifest(bytes: Uint8Array, limits: ArchiveLimits): Decoded<ArchiveManifest> {
  checkStructure(bytes, MEMBER.manifest, limits);
  const json = parseJson(bytes, MEMBER.manifest);
  const head = validate(headSchema, json, MEMBER.manifest);
  if (head.archive_format !== ARCHIVE_FORMAT) {
    throw new ArchiveError(
      'ARCHIVE_UNSUPPORTED_FORMAT',
      `the archive is in the format ${quoted(head.archive_format)}; this reader knows "${ARCHIVE_FORMAT}"`,
      { member: MEMBER.manifest },
    );
  }
  const missing = head.required_features.filter((feature) => !SUPPORTED_FEATURES.includes(feature));
  if (missing.length > 0) {
    throw new ArchiveError(
      'ARCHIVE_UNSUPPORTED_FORMAT',
      `the archive requires ${missing.slice(0, 10).map(quoted).join(', ')}; ` +
        `this reader of "${ARCHIVE_FORMAT}" supports ${SUPPORTED_FEATURES.map(quoted).join(', ') || 'no features'}`,
      { member: MEMBER.manifest },
    );
  }
  const manifest = validate(manifestSchema, json, MEMBER.manifest);
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
    },
    unknownFields:
      unknownFields(json, manifestSchema.shape, MEMBER.manifest) +
      unknownFields(at(json, 'state'), stateFields, MEMBER.manifest) +
      unknownFields(at(json, 'counts'), countFields, MEMBER.manifest) +
      unknownInEach(at(json, 'versions'), versionFields, MEMBER.manifest),
  };
}

/** Reads `tags.json`. @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT. */
export function decodeTags(bytes: Uint8Array, limits: ArchiveLimits): Decoded<ArchivedTag[]> {
  checkStructure(bytes, MEMBER.tags, limits);
  const json = parseJson(bytes, MEMBER.tags);
  const { tags } = validate(tagsSchema, json, MEMBER.tags);
  return {
    value: tags.map((tag) => ({
      tag: tag.tag,
      serial: tag.serial,
      description: tag.description,
      actor: tag.actor,
      createdAt: tag.created_at,
      updatedAt: tag.updated_at,
    })),
    unknownFields:
      unknownFields(json, tagsSchema.shape, MEMBER.tags) +
      unknownInEach(at(json, 'tags'), tagFields, MEMBER.tags),
  };
}

/** Reads one line of `events.ndjson`. @throws ArchiveError ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT. */
export function decodeEvent(line: Uint8Array): Decoded<ArchivedEvent> {
  const json = parseJson(line, MEMBER.events);
  const event = validate(eventSchema, json, MEMBER.events);
  return {
    value: {
      id: event.id,
      kind: event.kind,
      serial: event.serial,
      actor: event.actor,
      payload: event.payload,
      createdAt: event.created_at,
    },
    unknownFields: unknownFields(json, eventFields, MEMBER.events),
  };
}

/** Reads one line of `resources.ndjson`. @throws ArchiveError ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT. */
export function decodeResource(line: Uint8Array): Decoded<ArchivedResource> {
  const json = parseJson(line, MEMBER.resources);
  const resource = validate(resourceSchema, json, MEMBER.resources);
  return {
    value: {
      address: resource.address,
      createSerial: resource.create_serial,
      deleteSerial: resource.delete_serial,
      attributesHash: resource.attributes_hash,
      schemaVersion: resource.schema_version,
      createdAt: resource.created_at,
    },
    unknownFields: unknownFields(json, resourceFields, MEMBER.resources),
  };
}

/** Reads `export.json`. @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT or ARCHIVE_INCONSISTENT. */
export function decodeExportRecord(bytes: Uint8Array, limits: ArchiveLimits): Decoded<ExportRecord> {
  checkStructure(bytes, MEMBER.exportRecord, limits);
  const json = parseJson(bytes, MEMBER.exportRecord);
  const record = validate(exportSchema, json, MEMBER.exportRecord);
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
      unknownFields(json, exportFields, MEMBER.exportRecord) +
      unknownFields(at(json, 'source'), exportFields.source.shape, MEMBER.exportRecord) +
      unknownFields(at(json, 'tool'), exportFields.tool.shape, MEMBER.exportRecord),
  };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseJson(bytes: Uint8Array, member: string): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    // The parser's own message quotes the text around the fault.
    throw new ArchiveError('ARCHIVE_CORRUPT', `${member} is not JSON in UTF-8`, { member });
  }
}

function isJson(value: string): boolean {
  try {
    JSON.parse(value);
    return true;
  } catch {
    return false;
  }
}

function validate<Schema extends z.ZodType>(schema: Schema, json: unknown, member: string): z.output<Schema> {
  const result = schema.safeParse(json);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const where = issue?.path.map(String).join('.') || 'the whole';
  throw new ArchiveError('ARCHIVE_INCONSISTENT', `${member}: ${where}: ${issue?.message ?? 'invalid'}`, {
    member,
  });
}

/** The value under a key of what the schema has already found to be an object. */
function at(json: unknown, key: string): unknown {
  return typeof json === 'object' && json !== null ? Reflect.get(json, key) : undefined;
}

function unknownInEach(list: unknown, known: object, member: string): number {
  if (!Array.isArray(list)) return 0;
  return list.reduce((sum: number, item: unknown) => sum + unknownFields(item, known, member), 0);
}

function unknownFields(json: unknown, known: object, member: string): number {
  if (typeof json !== 'object' || json === null) return 0;
  const unknown = Object.keys(json).filter((key) => !Object.hasOwn(known, key));
  if (unknown.includes('__proto__')) {
    throw new ArchiveError('ARCHIVE_UNSAFE', `${member} has a field named __proto__`, { member });
  }
  return unknown.length;
}

/** Commas and brackets that an entry of the longest list may use: twice what the known fields need. */
const STRUCTURE_PER_ENTRY = 16;
const STRUCTURE_BESIDE_ENTRIES = 1024;

/**
 * Refuses JSON that is small as text and large as objects: `[{},{},…]` grows twentyfold when parsed. Commas and
 * brackets within strings are not counted.
 */
function checkStructure(bytes: Uint8Array, member: string, limits: ArchiveLimits): void {
  const allowed = limits.maxVersions * STRUCTURE_PER_ENTRY + STRUCTURE_BESIDE_ENTRIES;
  let inString = false;
  let found = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === 0x22) inString = !inString;
    else if (inString) index += Number(byte === 0x5c);
    else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) found++;
    if (found > allowed) {
      throw new ArchiveError(
        'ARCHIVE_TOO_LARGE',
        `${member} has more entries than ${limits.maxVersions} versions need`,
        {
          member,
        },
      );
    }
  }
}
