import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArchivedTag } from '../../archive/model.ts';
import type { VerifiedArchive } from '../../archive/reader.ts';
import { present } from '../../base/invariant.ts';
import { named } from '../archive-input.ts';
import type { CommonOptions, Context } from '../context.ts';
import { readNamed } from '../document-reader.ts';
import { EXIT, type Exit } from '../endings.ts';
import { temporaryDirectory } from '../files.ts';
import { shown } from '../progress.ts';
import { readVersion } from '../read-version.ts';
import { type Difference, diffStates } from '../state-diff.ts';
import { counted, jsonText, visible } from '../texts.ts';

/** `kl archive diff`: what differs between two archives, two versions, or an archive and what a service holds. */
export async function run(context: Context, _options: CommonOptions, was: string, is: string): Promise<Exit> {
  await using aside = await temporaryDirectory();
  const one = await locate(context, was, join(aside.path, 'before.klstate'));
  const other = await locate(context, is, join(aside.path, 'after.klstate'));
  const ofVersions = one.reference !== null || other.reference !== null;
  const [before, after] = [await read(context, one), await read(context, other)];
  const history = ofVersions ? null : compareHistories(before.archive, after.archive);
  const differences = before.found.bytes.equals(after.found.bytes)
    ? []
    : diffStates(before.document, after.document);
  const same = history === null ? differences.length === 0 : history.relation === 'SAME';
  context.terminal.result(
    {
      same,
      before: sideValue(before),
      after: sideValue(after),
      ...(history && { history }),
      differences,
    },
    () =>
      [
        history === null ? versionText(before, after) : historyText(history, before, after),
        differencesText(differences),
      ].join('\n\n'),
  );
  return same ? EXIT.done : EXIT.failed;
}

/** Its 1 says that there is a difference. */
export const compares = () => true;

/**
 * A file, a file and a version (`network.klstate@10`), or a state of the service, with or without a version.
 *
 * @param aside where an archive of a state goes.
 * @returns an archive's file, and which version of it is meant; null: the whole history.
 */
async function locate(context: Context, text: string, aside: string) {
  if (await isFile(text)) return { label: text, path: text, reference: null };
  for (let at = text.indexOf('@', 1); at > 0; at = text.indexOf('@', at + 1)) {
    const path = text.slice(0, at);
    if (await isFile(path)) return { label: text, path, reference: text.slice(at + 1) };
  }
  const at = text.indexOf('@', 1);
  const name = at < 0 ? text : text.slice(0, at);
  await takeLiveArchive(context, name, aside);
  return { label: text, path: aside, reference: at < 0 ? null : text.slice(at + 1) };
}

/** Takes an archive of a state as it is now, to be looked into and thrown away. */
async function takeLiveArchive(context: Context, name: string, path: string): Promise<void> {
  const { connect } = await import('../service.ts');
  const { exportState } = await import('../export-state.ts');
  const { historyOf } = await import('../states.ts');
  const service = await connect(context);
  const { historyDigest } = await historyOf(service, name);
  const exported = { name, path, historyDigest, replace: true, identity: context.identity };
  await shown(context.terminal, name, (work) => exportState(service, exported, work));
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() ?? false;
}

/** What is compared: a whole history, or one version of it. */
async function read(context: Context, { label, path, reference }: Awaited<ReturnType<typeof locate>>) {
  const { archive, damage, ...read } = await shown(context.terminal, label, (work) =>
    readVersion(path, reference ?? 'current', context, work),
  );
  if (damage !== null) throw named(path, damage);
  const found = present(read.found, 'a whole archive holds each of its versions');
  const document = readNamed(`${label}, serial ${found.version.serial}`, found.bytes);
  return { label, archive, found, document };
}

type Side = Awaited<ReturnType<typeof read>>;

function sideValue({ label, archive, found }: Side) {
  return {
    what: label,
    name: archive.manifest.state.label,
    serial: found.version.serial,
    versionCount: archive.counts.versions,
    historyDigest: archive.historyDigest,
  };
}

/** How two histories stand to each other. */
function compareHistories(before: VerifiedArchive, after: VerifiedArchive) {
  const [one, other] = [versionKeys(before), versionKeys(after)];
  const parting = one.findIndex((key, at) => key !== other[at]);
  /** Versions that both have, from the first on. */
  const commonVersions = parting < 0 ? one.length : parting;
  const tags = differingTags(before.tags, after.tags);
  const parts = { commonVersions, partsAtSerial: null, tags };
  if (before.historyDigest === after.historyDigest) return { ...parts, relation: 'SAME' } as const;
  if (one.length !== other.length) {
    if (commonVersions === one.length) return { ...parts, relation: 'BEGINNING' } as const;
    if (commonVersions === other.length) return { ...parts, relation: 'CONTINUATION' } as const;
  }
  /** Null where all versions are the same. */
  const partsAtSerial = before.manifest.versions[commonVersions]?.serial ?? null;
  return { ...parts, relation: 'OTHER', partsAtSerial } as const;
}

/** A text for each version that is the same where all that the history digest holds of it is. */
function versionKeys({ manifest, versionDigests }: VerifiedArchive): string[] {
  return manifest.versions.map(({ id, ...version }, at) =>
    jsonText({ ...version, sha256: present(versionDigests[at], 'each version has a digest').sha256 }),
  );
}

/** Tags that one has and the other has not, or has otherwise. */
function differingTags(before: readonly ArchivedTag[], after: readonly ArchivedTag[]): string[] {
  const [one, other] = [before, after].map(
    (tags) => new Map(tags.map(({ tag, ...rest }) => [tag, jsonText(rest)])),
  );
  const names = new Set([...before, ...after].map(({ tag }) => tag));
  return [...names].filter((tag) => one?.get(tag) !== other?.get(tag)).sort();
}

function historyText(
  { relation, commonVersions, partsAtSerial, tags }: ReturnType<typeof compareHistories>,
  before: Side,
  after: Side,
): string {
  const [one, other] = [visible(before.label), visible(after.label)];
  const more = (side: Side) => {
    const added = side.archive.manifest.versions.slice(commonVersions);
    return `${counted(added.length, 'more version')}, serial ${added[0]?.serial} to ${added.at(-1)?.serial}`;
  };
  const tagText = tags.length === 0 ? '' : `\nTags that differ: ${tags.map(visible).join(', ')}`;
  if (relation === 'SAME') return `${one} and ${other} hold the same history.`;
  if (relation === 'BEGINNING')
    return `${one} is the beginning of ${other}, which has ${more(after)}.${tagText}`;
  if (relation === 'CONTINUATION')
    return `${other} is the beginning of ${one}, which has ${more(before)}.${tagText}`;
  if (partsAtSerial === null) {
    return `${one} and ${other} have the same versions; their tags, lineage or current version differ.${tagText}`;
  }
  return `${one} and ${other} have ${counted(commonVersions, 'version')} in common and part at serial ${partsAtSerial}.${tagText}`;
}

function versionText(before: Side, after: Side): string {
  const line = (mark: string, { label, found: { version } }: Side) =>
    `${mark} ${visible(label)}, serial ${version.serial}, ${version.createdAt}`;
  return `${line('---', before)}\n${line('+++', after)}`;
}

const MARKS = { added: '+', removed: '-', changed: '~' } as const;

function differencesText(differences: readonly Difference[]): string {
  if (differences.length === 0) return 'No resource and no output differs.';
  const count = (kind: Difference['kind']) => differences.filter((each) => each.kind === kind).length;
  const lines = [`+${count('added')} added  -${count('removed')} removed  ~${count('changed')} changed`];
  for (const { kind, address, changes } of differences) {
    lines.push(`${MARKS[kind]} ${visible(address)}`);
    for (const { path, before, after } of changes) {
      lines.push(`    ${visible(path)}: ${visible(before ?? '(none)')} -> ${visible(after ?? '(none)')}`);
    }
  }
  return lines.join('\n');
}
