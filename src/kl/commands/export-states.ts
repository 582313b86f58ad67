import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SEALED_FILE_EXTENSION } from '../../archive/format.ts';
import { utcTimeOf } from '../../base/time.ts';
import { archivePathOf, INDEX_FILE, type IndexEntry, readIndex, writeIndex } from '../archive-index.ts';
import type { CommonOptions, Context } from '../context.ts';
import type { StateAnswer } from '../documents.ts';
import { type Exit, KlError } from '../endings.ts';
import { exportState } from '../export-state.ts';
import { unwritable } from '../files.ts';
import { Progress } from '../progress.ts';
import { connect, type Service } from '../service.ts';
import { forEachOf, outcomeText, tellAll } from '../several.ts';
import { historyOf, matchingStates } from '../states.ts';
import { bytesText, counted, visible } from '../texts.ts';

interface Options extends CommonOptions {
  readonly out: string;
}

/** A service allows three at a time to one caller; one is left for whoever looks at something meanwhile. */
const AT_A_TIME = 2;
const BUSY_PAUSE_MS = 2_000;
const BUSY_ATTEMPTS = 60;

/** What became of a state. */
interface Taken extends IndexEntry {
  readonly outcome: 'EXPORTED' | 'UNCHANGED';
}

/** `kl export states`: every matching state to a directory; what has not changed since the last time is left as it is. */
export async function run(context: Context, { out: directory }: Options, pattern: string): Promise<Exit> {
  const { terminal, signal, identity } = context;
  const service = await connect(context);
  await mkdir(directory, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw unwritable(directory, error);
  });
  const index = await readIndex(directory);
  using progress = await Progress.on(terminal);
  let writing = Promise.resolve();
  const take = async (state: StateAnswer): Promise<Taken> => {
    using work = progress.begin(state.name);
    const known = index.get(state.name);
    const historyDigest = await digestOf(service, state);
    const pathOf = (file: string) => join(directory, ...file.split('/'));
    if (known?.historyDigest === historyDigest) {
      const there = await stat(pathOf(known.file)).catch(() => null);
      if (String(there?.size) === known.sizeBytes) return { outcome: 'UNCHANGED', ...known };
    }
    const plainFile = known?.file.replace(/\.age$/, '') ?? archivePathOf(state.name);
    const path = pathOf(plainFile);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const exported = { name: state.name, path, historyDigest, replace: true, identity, isNamedByKind: true };
    const taken = await whenThereIsRoom(service, () => exportState(service, exported, work));
    const entry: IndexEntry = {
      name: state.name,
      // Of a file that nobody here can open it is as it was when it was asked for.
      currentSerial: String(
        taken.archive?.manifest.state.currentSerial ?? state.manifest?.currentSerial ?? '',
      ),
      historyDigest: taken.historyDigest,
      sha256: taken.sha256,
      sizeBytes: String(taken.sizeBytes),
      file: taken.path === path ? plainFile : `${plainFile}${SEALED_FILE_EXTENSION}`,
      exportedAt: utcTimeOf(new Date()),
    };
    index.set(entry.name, entry);
    // One after the other: each holds all that is known by then.
    writing = writing.then(() => writeIndex(directory, index));
    await writing;
    return { outcome: 'EXPORTED', ...entry };
  };
  async function* exportable() {
    for await (const state of matchingStates(service, pattern)) {
      if (state.status.exportable) yield state;
      else terminal.say(`Left out: ${visible(state.name)} has no version yet.`);
    }
  }
  const ended = await forEachOf(exportable(), ({ name }) => name, AT_A_TIME, signal, take);
  progress[Symbol.dispose]();
  if (ended.length === 0)
    throw new KlError('STATE_NOT_FOUND', `No state that this credential may see matches ${pattern}.`);
  const exit = tellAll(terminal, ended, 'name', 'STATE', {
    OUTCOME: outcomeText,
    SERIAL: ({ currentSerial }) => currentSerial,
    SIZE: ({ sizeBytes }) => bytesText(BigInt(sizeBytes)),
    FILE: ({ file }) => file,
  });
  const failed = ended.filter(({ error }) => error !== null).length;
  terminal.say(
    `\n${counted(ended.length - failed, 'state')} in ${visible(join(directory, INDEX_FILE))}${failed > 0 ? `, ${failed} failed; run it again` : ''}.`,
  );
  return exit;
}

/** The digest of a state's history now; null where it cannot be told: the export will say why. */
async function digestOf(service: Service, { name, manifest }: StateAnswer): Promise<string | null> {
  if (manifest !== null) return manifest.historyDigest;
  try {
    return (await historyOf(service, name)).historyDigest;
  } catch (error) {
    if (error instanceof KlError) return null;
    throw error;
  }
}

/** Others of the same caller may be exporting: that passes by. */
async function whenThereIsRoom<Result>(service: Service, work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const isBusy = error instanceof KlError && error.code === 'TOO_MANY_OPERATIONS';
      if (!isBusy || attempt === BUSY_ATTEMPTS) throw error;
      await service.pause(BUSY_PAUSE_MS);
    }
  }
}
