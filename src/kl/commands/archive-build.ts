import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parse } from 'csv-parse/sync';
import { tagNameFault } from '../../archive/consistency.ts';
import { ARCHIVE_FILE_EXTENSION } from '../../archive/format.ts';
import { writeArchive } from '../../archive/writer.ts';
import { isUtcTime } from '../../base/time.ts';
import { named } from '../archive-input.ts';
import { buildHistory, type FileFacts, stateFiles } from '../built-history.ts';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { isSystemError, refuseExisting, unreadable, unwritable } from '../files.ts';
import { shown } from '../progress.ts';
import { pairs } from '../tables.ts';
import { bytesText, counted, shellWord, visible } from '../texts.ts';

interface Options extends CommonOptions {
  readonly out: string;
  readonly name?: string;
  readonly manifest?: string;
  readonly tag?: readonly string[];
  readonly force?: boolean;
}

/** `kl archive build`: state files from anywhere become a history. */
export async function run(context: Context, options: Options, paths: readonly string[]): Promise<Exit> {
  const { terminal, signal } = context;
  const { out, force = false } = options;
  if (!force) await refuseExisting(out);
  const tags = (options.tag ?? []).map(tagIn);
  const facts = options.manifest === undefined ? new Map() : await readFacts(options.manifest);
  const { files, others } = await stateFiles(paths);
  for (const other of others) terminal.say(`Left out: ${visible(other)} is not named like a state file.`);
  const { contents, duplicates, written } = await shown(terminal, out, async (work) => {
    const built = await buildHistory(
      { label: options.name ?? basename(out, ARCHIVE_FILE_EXTENSION), files, facts, tags },
      signal,
      (done) => work.show({ step: 'reading state files', versions: { done, total: files.length } }),
    );
    const total = built.contents.versions.length;
    const written = await writeArchive(built.contents, out, {
      signal,
      onProgress: ({ versions, bytes }) =>
        work.show({
          step: 'writing',
          bytes: { done: Number(bytes), total: null },
          versions: { done: versions, total },
        }),
    }).catch((error: unknown) => {
      throw isSystemError(error) ? unwritable(out, error) : named(out, error);
    });
    return { ...built, written };
  });
  for (const { path, of } of duplicates)
    terminal.say(`Left out: ${visible(path)} is the same as ${visible(of)}.`);
  const { historyDigest, sha256, sizeBytes, rawBytes } = written;
  const { state, versions } = contents;
  terminal.result(
    {
      file: out,
      name: state.label,
      lineage: state.lineage,
      versionCount: versions.length,
      firstSerial: versions[0]?.serial,
      lastSerial: versions.at(-1)?.serial,
      tagCount: tags.length,
      historyDigest,
      sha256,
      sizeBytes,
      duplicates,
      leftOut: others,
    },
    () =>
      pairs({
        File: out,
        State: state.label,
        Lineage: state.lineage,
        Versions: `${versions.length}, serial ${versions[0]?.serial} to ${versions.at(-1)?.serial}`,
        Tags: tags.length,
        Size: `${bytesText(sizeBytes)} for ${bytesText(rawBytes)} of ${counted(versions.length, 'state')}`,
        'History digest': historyDigest,
      }),
  );
  terminal.say(`\nNext: kl import archive ${shellWord(out)} --dry-run`);
  return EXIT.done;
}

function tagIn(text: string): { tag: string; serial: bigint } {
  const at = text.lastIndexOf('=');
  const [tag, serial] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || !/^\d{1,19}$/.test(serial)) {
    throw failure(
      'USAGE',
      `--tag ${text}: expected a tag and the serial it names, as in --tag release-7=12.`,
    );
  }
  const fault = tagNameFault(tag);
  if (fault !== null) throw failure('USAGE', `--tag ${text}: the tag ${fault}.`);
  return { tag, serial: BigInt(serial) };
}

const COLUMNS = ['file', 'created_at', 'created_by', 'source'];

/** A CSV with a head line: `file`, and any of `created_at`, `created_by` and `source`. */
async function readFacts(path: string): Promise<Map<string, FileFacts>> {
  const unusable = (why: string) => failure('FILE_UNUSABLE', `${path} ${why}.`);
  const text = await readFile(path, 'utf8').catch(unreadable(path));
  let records: Record<string, string | undefined>[];
  try {
    const cast = (value: string, { header }: { readonly header: boolean }) =>
      header ? value : value || undefined;
    records = parse(text, { columns: true, bom: true, skip_empty_lines: true, trim: true, cast });
  } catch (error) {
    throw unusable(`is no CSV: ${error instanceof Error ? error.message : error}`);
  }
  const unknown = Object.keys(records[0] ?? {}).filter((column) => !COLUMNS.includes(column));
  if (unknown.length > 0) throw unusable(`has the column ${unknown[0]}; there are ${COLUMNS.join(', ')}`);
  const facts = new Map<string, FileFacts>();
  for (const { file, created_at: time, created_by: createdBy, source } of records) {
    if (file === undefined) throw unusable('has a line without a file');
    if (facts.has(file)) throw unusable(`names ${file} twice`);
    facts.set(file, { createdAt: time && microseconds(time, path), createdBy, source });
  }
  return facts;
}

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

/** An instant as archives write it, of one in RFC 3339. */
function microseconds(text: string, path: string): string {
  const [, seconds = '', fraction = '', offset = ''] = TIME.exec(text) ?? [];
  const instant = new Date(`${seconds}${offset}`);
  const time = Number.isNaN(instant.getTime())
    ? ''
    : `${instant.toISOString().slice(0, 19)}.${fraction.slice(0, 6).padEnd(6, '0')}Z`;
  if (!isUtcTime(time)) {
    throw failure(
      'FILE_UNUSABLE',
      `${path} has the time ${JSON.stringify(text)}; expected RFC 3339, as 2026-03-02T10:00:00.000118Z.`,
    );
  }
  return time;
}
