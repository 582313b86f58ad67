import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { readIndex } from '../archive-index.ts';
import type { CommonOptions, Context } from '../context.ts';
import { DOCUMENTS } from '../documents.ts';
import { type Exit, failure } from '../endings.ts';
import { unreadable } from '../files.ts';
import { importArchive, prepareImport } from '../import-archive.ts';
import { Progress } from '../progress.ts';
import { connect } from '../service.ts';
import { forEachOf, outcomeText, tellAll } from '../several.ts';
import { sendArchive } from '../staged-upload.ts';
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
  const ended = await forEachOf(
    files,
    (file) => file,
    AT_A_TIME,
    signal,
    async (file): Promise<Brought> => {
      using work = progress.begin(file);
      await using prepared = await prepareImport(join(directory, file), context, work);
      const { archive } = prepared;
      const { historyDigest, counts, manifest } = archive;
      const brought = { name: manifest.state.label, versionCount: counts.versions, historyDigest };
      const there = await service.ask(DOCUMENTS.state, { name: brought.name });
      if (there?.manifest?.historyDigest === historyDigest) return { ...brought, outcome: 'ALREADY_THERE' };
      await using upload = await sendArchive(service, prepared.path, archive, work);
      const imported = { archive, upload, placement: {}, dryRun };
      const { report } = await importArchive(service, imported, work);
      return {
        ...brought,
        name: report.name,
        historyDigest: report.historyDigest,
        outcome: dryRun ? 'COULD_BE_IMPORTED' : 'IMPORTED',
      };
    },
  );
  progress[Symbol.dispose]();
  return tellAll(terminal, ended, 'file', 'FILE', {
    STATE: ({ name }) => name,
    OUTCOME: outcomeText,
    VERSIONS: ({ versionCount }) => versionCount,
  });
}

/** The archives of a directory, below it: those of its index, or every one where it has none. */
async function archivesIn(directory: string): Promise<string[]> {
  const files = [...(await readIndex(directory)).values()].map(({ file }) => file);
  if (files.length === 0) {
    const all = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
      unreadable(directory),
    );
    const archives = all.filter((entry) => entry.isFile() && ARCHIVE_FILE.test(entry.name));
    files.push(...archives.map((entry) => relative(directory, join(entry.parentPath, entry.name))));
  }
  if (files.length === 0) throw failure('FILE_UNUSABLE', `There is no archive in ${directory}.`);
  return files.sort();
}
