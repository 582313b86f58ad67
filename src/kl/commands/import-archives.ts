import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { readIndex } from '../archive-index.ts';
import { named } from '../archive-input.ts';
import type { CommonOptions, Context } from '../context.ts';
import { type Exit, failure } from '../endings.ts';
import { importArchive, PLAIN_PLACEMENT, verifyBeforeImport } from '../import-archive.ts';
import { Progress } from '../progress.ts';
import { openFile } from '../sealed-input.ts';
import { connect } from '../service.ts';
import { exitOf, forEachOf } from '../several.ts';
import { sendArchive } from '../staged-upload.ts';
import { findState } from '../states.ts';
import { table } from '../tables.ts';
import { counted, visible } from '../texts.ts';

interface Options extends CommonOptions {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

const AT_A_TIME = 2;
const ARCHIVE_FILE = /\.klstate(\.age)?$/;

/** What became of an archive. */
interface Brought {
  readonly name: string;
  readonly outcome: 'IMPORTED' | 'COULD_BE_IMPORTED' | 'ALREADY_THERE';
  readonly versionCount: number;
  readonly historyDigest: string;
}

/** `kl import archives`: every archive of a directory, under its own name; what is there already is left as it is. */
export async function run(context: Context, options: Options, directory: string): Promise<Exit> {
  const { terminal, signal } = context;
  const { dryRun = false, yes = false } = options;
  if (!dryRun && !yes && !terminal.isInteractive) {
    throw failure('USAGE', 'Nobody is here to be asked: say --yes, or --dry-run to see what it would do.');
  }
  const files = await archivesIn(directory);
  const service = await connect(context);
  if (!dryRun && !yes) {
    process.stderr.write(`${files.map((file) => visible(file)).join('\n')}\n\n`);
    await terminal.confirm(`Import ${counted(files.length, 'archive')}?`, signal);
  }
  using progress = await Progress.on(terminal);
  const ended = await forEachOf(files, AT_A_TIME, signal, async (file): Promise<Brought> => {
    using work = progress.begin(file);
    const path = join(directory, file);
    await using opened = await openFile(path, context).catch((error: unknown) => {
      throw named(path, error);
    });
    const archive = await verifyBeforeImport(opened.path, context, work);
    const { historyDigest, counts, manifest } = archive;
    const brought = { name: manifest.state.label, versionCount: counts.versions, historyDigest };
    const there = await findState(service, brought.name);
    if (there?.manifest?.historyDigest === historyDigest) return { ...brought, outcome: 'ALREADY_THERE' };
    await using upload = await sendArchive(service, opened.path, archive, work, signal);
    const { report } = await importArchive(
      service,
      { archive, upload, placement: PLAIN_PLACEMENT, dryRun },
      work,
      signal,
    );
    return {
      ...brought,
      name: report?.name ?? brought.name,
      historyDigest: report?.historyDigest ?? historyDigest,
      outcome: dryRun ? 'COULD_BE_IMPORTED' : 'IMPORTED',
    };
  });
  progress[Symbol.dispose]();
  const rows = ended.sort((one, other) => (one.item < other.item ? -1 : 1));
  terminal.result(
    rows.map(({ item, result, error }) => ({
      file: item,
      ...(error === null
        ? result
        : { outcome: 'FAILED', error: { code: error.code, message: error.message } }),
    })),
    () =>
      table(
        ['FILE', 'STATE', 'OUTCOME', 'VERSIONS'],
        rows.map(({ item, result, error }) =>
          error === null
            ? [item, result.name, result.outcome.toLowerCase().replaceAll('_', ' '), result.versionCount]
            : [item, null, `FAILED: ${error.code}`, null],
        ),
      ),
  );
  for (const { item, error } of rows) {
    if (error !== null) terminal.warn(`${visible(item)}: ${visible(error.message)}`);
  }
  return exitOf(ended);
}

/** The archives of a directory, below it: those of its index, or every one where it has none. */
async function archivesIn(directory: string): Promise<string[]> {
  const indexed = [...(await readIndex(directory)).values()].map(({ file }) => file);
  const files = indexed.length > 0 ? indexed : await allArchives(directory);
  if (files.length === 0) throw failure('FILE_UNUSABLE', `There is no archive in ${directory}.`);
  return files.sort();
}

async function allArchives(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
    (error: unknown) => {
      throw failure('FILE_UNUSABLE', `${directory} cannot be read.`, { cause: error });
    },
  );
  return entries
    .filter((entry) => entry.isFile() && ARCHIVE_FILE.test(entry.name))
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)));
}
