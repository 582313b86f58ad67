import { REDACTED_FEATURE } from '../../archive/format.ts';
import type { ArchivedEvent, ArchivedResource, ArchivedTag, ArchiveManifest } from '../../archive/model.ts';
import { present } from '../../base/invariant.ts';
import { archiveMembers, named, type Reading } from '../archive-input.ts';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit } from '../endings.ts';
import { sizeOf } from '../files.ts';
import { pairs, table } from '../tables.ts';
import { bytesText, shellWord } from '../texts.ts';

interface Options extends CommonOptions {
  readonly versions?: boolean;
  readonly tags?: boolean;
  readonly events?: boolean;
  readonly resources?: boolean;
}

/** `kl archive inspect`: what an archive says of itself, from its first members; nothing is verified. */
export async function run(context: Context, options: Options, path: string): Promise<Exit> {
  const { terminal } = context;
  const size = await sizeOf(path);
  const read = await readHead(path, options, context).catch((error: unknown) => {
    throw named(path, error);
  });
  terminal.result(
    {
      verified: false,
      file: path,
      sizeBytes: size,
      ...manifestValue(read.manifest),
      ...(options.versions && { versions: read.manifest.versions }),
      ...(options.tags && { tags: read.tags }),
      ...(options.events && { events: read.events.map(({ payload, ...event }) => event) }),
      ...(options.resources && { resources: read.resources }),
    },
    () => textOf(read, options, size),
  );
  terminal.say(`\nNothing was verified. To do so: kl archive verify ${shellWord(path)}`);
  return EXIT.done;
}

/** What an archive says of itself: no more than was asked for. */
async function readHead(path: string, options: Options, reading: Reading) {
  const events: ArchivedEvent[] = [];
  const resources: ArchivedResource[] = [];
  let tags: readonly ArchivedTag[] = [];
  let manifest: ArchiveManifest | undefined;
  await using members = archiveMembers(path, reading);
  for await (const member of members) {
    if (member.kind === 'manifest') manifest = member.manifest;
    if (member.kind === 'tags') tags = member.tags;
    if (member.kind === 'event' && options.events) events.push(member.event);
    if (member.kind === 'resource' && options.resources) resources.push(member.resource);
    // Whatever stands behind the last that was asked for is left alone, raw states most of all.
    const isPast =
      member.kind === 'export' ||
      (member.kind === 'tags' && !options.events && !options.resources) ||
      (member.kind === 'resource' && !options.resources) ||
      (member.kind === 'manifest' && !options.tags && !options.events && !options.resources);
    if (isPast) break;
  }
  return { manifest: present(manifest, 'no archive is read without its manifest'), tags, events, resources };
}

/** What a manifest says, in the names of the service's `StateArchiveManifest`. */
function manifestValue({ state, counts, versions, requiredFeatures }: ArchiveManifest) {
  const times = versions.map(({ createdAt }) => createdAt).sort();
  return {
    name: state.label,
    redacted: requiredFeatures.includes(REDACTED_FEATURE),
    lineage: state.lineage,
    lifecycleStatus: state.lifecycleStatus.toUpperCase(),
    workspace: state.workspace,
    environment: state.environment,
    createdAt: state.createdAt,
    updatedAt: state.updatedAt,
    currentSerial: state.currentSerial,
    currentVersionId: state.currentVersionId,
    firstSerial: versions[0]?.serial,
    lastSerial: versions.at(-1)?.serial,
    versionCount: counts.versions,
    tagCount: counts.tags,
    eventCount: counts.events,
    resourceSpanCount: counts.resources,
    sources: distinct(versions.map(({ source }) => source)),
    terraformVersions: distinct(versions.map(({ terraformVersion }) => terraformVersion)),
    firstCreatedAt: times[0],
    lastCreatedAt: times.at(-1),
  };
}

function distinct(values: readonly (string | null)[]): string[] {
  return [...new Set(values)].filter((value) => value !== null).sort();
}

function textOf(
  { manifest, tags, events, resources }: Awaited<ReturnType<typeof readHead>>,
  options: Options,
  size: number,
): string {
  const value = manifestValue(manifest);
  const { currentSerial } = value;
  const tagged = Map.groupBy(tags, ({ serial }) => serial);
  const marksOf = (serial: bigint) => [
    ...(serial === currentSerial ? ['current'] : []),
    ...(tagged.get(serial) ?? []).map(({ tag }) => tag),
  ];
  const parts = [
    pairs({
      State: value.name,
      Redacted: value.redacted ? 'yes: values were taken out, and no import takes it' : undefined,
      Lineage: value.lineage,
      Lifecycle: value.lifecycleStatus,
      Workspace: value.workspace,
      Environment: value.environment,
      Versions: `${value.versionCount}, serial ${value.firstSerial} to ${value.lastSerial}`,
      Current: `serial ${currentSerial}`,
      Written: `${value.firstCreatedAt} to ${value.lastCreatedAt}`,
      Terraform: value.terraformVersions.join(', ') || null,
      Sources: value.sources.join(', '),
      Tags: value.tagCount,
      'Audit events': value.eventCount,
      'Resource spans': value.resourceSpanCount,
      File: bytesText(size),
    }),
    options.versions &&
      table(manifest.versions, {
        SERIAL: 'serial',
        WRITTEN: 'createdAt',
        BY: 'createdBy',
        TERRAFORM: 'terraformVersion',
        SOURCE: 'source',
        '': ({ serial }) => marksOf(serial).join(', '),
      }),
    options.tags &&
      table(tags, {
        TAG: 'tag',
        SERIAL: 'serial',
        BY: 'actor',
        SET: 'updatedAt',
        DESCRIPTION: 'description',
      }),
    options.events && table(events, { WHEN: 'createdAt', KIND: 'kind', SERIAL: 'serial', BY: 'actor' }),
    options.resources &&
      table(resources, { ADDRESS: 'address', FROM: 'createSerial', TO: 'deleteSerial', SINCE: 'createdAt' }),
  ];
  return parts.filter((part) => typeof part === 'string').join('\n\n');
}
