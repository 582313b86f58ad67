import { z } from 'zod';
import { spanFault, tagNameFault } from './consistency.ts';
import { ArchiveError, quoted } from './errors.ts';
import { uuid } from './fields.ts';
import {
  ARCHIVE_FORMAT,
  type ArchiveLimits,
  MEMBER,
  REDACTED_FEATURE,
  SUPPORTED_FEATURES,
} from './format.ts';
import {
  type ArchivedState,
  type ArchiveManifest,
  eventForm,
  exportRecordForm,
  manifestForm,
  resourceForm,
  stateForm,
  tagForm,
  timesForm,
  versionForm,
} from './model.ts';
import { type JsonPlace, parseOwnJson } from './own-json.ts';
import { type Form, list, record } from './record-form.ts';

/** A value read from a member, and how many fields beside it this reader does not know. */
export interface Decoded<T> {
  value: T;
  unknownFields: number;
}

// ---- the members that are JSON ----

/** A member that is one JSON document. */
export function documentMember<T>(name: string, form: Form<T>) {
  return {
    name,
    /** Its bytes. */
    encode: (value: T): Uint8Array => Buffer.from(`${JSON.stringify(form.encode(value), null, 2)}\n`),
    /** @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT, ARCHIVE_UNSAFE or ARCHIVE_INCONSISTENT. */
    decode: (bytes: Uint8Array, limits: ArchiveLimits): Decoded<T> =>
      read(form, bytes, wholeMember(name, limits)),
  };
}

/** A member with a JSON document a line. */
export function linesMember<T>(name: string, form: Form<T>) {
  return {
    name,
    /** A line, its newline included. */
    encode: (value: T): string => `${JSON.stringify(form.encode(value))}\n`,
    /**
     * Reads the line of this number, from 1.
     *
     * @throws ArchiveError ARCHIVE_TOO_LARGE, ARCHIVE_CORRUPT, ARCHIVE_UNSAFE or ARCHIVE_INCONSISTENT.
     */
    decode: (line: Uint8Array, number: number): Decoded<T> =>
      read(form, line, {
        member: name,
        where: `${name} line ${number}`,
        maxEntries: STRUCTURE_BESIDE_ENTRIES,
      }),
  };
}

export type DocumentMember<T> = ReturnType<typeof documentMember<T>>;
export type LinesMember<T> = ReturnType<typeof linesMember<T>>;

/** See {@link decodeManifest}, too. */
export const MANIFEST = documentMember(MEMBER.manifest, manifestForm);
export const TAGS = documentMember(MEMBER.tags, record({ tags: list(tagForm) }));
export const EVENTS = linesMember(MEMBER.events, eventForm);
export const RESOURCES = linesMember(MEMBER.resources, resourceForm);
export const EXPORT_RECORD = documentMember(MEMBER.exportRecord, exportRecordForm);

// ---- what a history may hold that is to be archived ----

/**
 * The first field in which a state, a version, a tag, an event or a span breaks a rule of the format, and the rule, as a
 * clause (`created_at is not …`); null when an archive can hold it. The same rules are a reader's.
 */
export const stateFault = faultOf(stateForm);

/** See {@link stateFault}; of the state's times alone. */
export const stateTimesFault = faultOf(timesForm);

/** See {@link stateFault}. */
export const versionFault = faultOf(versionForm);

/** See {@link stateFault}; what a tag may be called is among the rules (data model 1.3). */
export const tagFault = faultOf(tagForm, ({ tag }) => tagNameFault(tag));

/** See {@link stateFault}. */
export const eventFault = faultOf(eventForm);

/** See {@link stateFault}. */
export const resourceFault = faultOf(resourceForm, spanFault);

function faultOf<T>(form: Form<T>, ruleBeside: (value: T) => string | null = () => null) {
  return (value: T): string | null => {
    const { error } = form.schema.safeParse(form.encode(value));
    return error === undefined ? ruleBeside(value) : firstIssue(error).join(' ');
  };
}

// ---- reading ----

const formatForm = record({ archive_format: z.string() });
const featuresForm = record({ required_features: z.array(z.string()) });
const manifestStateForm = record({ state: stateForm });

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
  return readSupported(manifestForm, bytes, limits, features);
}

/** Likewise reads the state out of what may be a part of the manifest. */
export function decodeManifestState(bytes: Uint8Array, limits: ArchiveLimits): ArchivedState {
  return readSupported(manifestStateForm, bytes, limits, SUPPORTED_FEATURES).value.state;
}

function readSupported<T>(
  form: Form<T>,
  bytes: Uint8Array,
  limits: ArchiveLimits,
  supported: readonly string[],
): Decoded<T> {
  const place = wholeMember(MEMBER.manifest, limits);
  const { json, fault } = parseOwnJson(bytes, place);
  const { archiveFormat } = validate(formatForm, json, place);
  if (archiveFormat !== ARCHIVE_FORMAT) {
    throw unsupported(`is in the format ${quoted(archiveFormat)}; this reader knows "${ARCHIVE_FORMAT}"`);
  }
  const { requiredFeatures } = validate(featuresForm, json, place);
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
  if (fault !== null) throw fault;
  return validated(form, json, place);
}

function unsupported(what: string): ArchiveError {
  return new ArchiveError('ARCHIVE_UNSUPPORTED_FORMAT', `the archive ${what}`, MEMBER.manifest);
}

function listed(names: readonly string[]): string {
  return names.map(quoted).join(', ');
}

/** Commas and brackets that an entry of the longest list may use: twice what the known fields need. */
const STRUCTURE_PER_ENTRY = 16;
const STRUCTURE_BESIDE_ENTRIES = 1024;

function wholeMember(member: string, { maxVersions }: ArchiveLimits): JsonPlace {
  return { member, where: member, maxEntries: maxVersions * STRUCTURE_PER_ENTRY + STRUCTURE_BESIDE_ENTRIES };
}

function read<T>(form: Form<T>, bytes: Uint8Array, place: JsonPlace): Decoded<T> {
  const { json, fault } = parseOwnJson(bytes, place);
  if (fault !== null) throw fault;
  return validated(form, json, place);
}

function validated<T>(form: Form<T>, json: unknown, place: JsonPlace): Decoded<T> {
  return { value: validate(form, json, place), unknownFields: form.unknownFields(json) };
}

function validate<T>({ schema }: Form<T>, json: unknown, { member, where }: JsonPlace): T {
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
