import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { type ExportedFile, exportState } from '../export-state.ts';
import { refuseExisting, temporaryDirectory } from '../private-file.ts';
import { Progress } from '../progress.ts';
import { connect } from '../service.ts';
import { archivePathOf } from '../state-file-name.ts';
import { historyOf } from '../states.ts';
import { pairs } from '../tables.ts';
import { bytesText, counted, shellWord, visible } from '../texts.ts';

interface Options extends CommonOptions {
  readonly out?: string;
  readonly force?: boolean;
  readonly ifChanged?: string;
  readonly recipient?: readonly string[];
  readonly discloseDigest?: boolean;
}

/** `kl export state`: one state's whole history to one verified file. */
export async function run(context: Context, options: Options, name: string): Promise<Exit> {
  const { terminal } = context;
  const { force = false } = options;
  const out = options.out ?? archivePathOf(name).replaceAll('/', '-');
  const expected = options.ifChanged?.toLowerCase();
  if (expected !== undefined && !/^[0-9a-f]{64}$/.test(expected)) {
    throw failure(
      'USAGE',
      '--if-changed: expected the history digest of an earlier export, 64 hexadecimal digits.',
    );
  }
  if (out === '-' && process.stdout.isTTY) {
    throw failure('USAGE', 'An archive is nothing for a terminal: give --out a file, or a pipe.');
  }
  if (out !== '-' && !force) await refuseExisting(out);
  const service = await connect(context);
  const manifest = await historyOf(service, name);
  const { versionCount, rawBytes, historyDigest, currentSerial } = manifest;
  terminal.say(
    `${visible(name)}: ${counted(versionCount, 'version')}, ${bytesText(BigInt(rawBytes))} of raw states, current serial ${currentSerial}`,
  );
  if (historyDigest === expected) {
    terminal.result({ name, changed: false, historyDigest }, () => 'unchanged');
    return EXIT.done;
  }
  const { recipient: recipients = [], discloseDigest: discloseHistoryDigest = false } = options;
  const isAsked = recipients.length > 0 || discloseHistoryDigest;
  const exported = {
    name,
    historyDigest,
    // A name that somebody gave is the file's name.
    isNamedByKind: options.out === undefined,
    sealing: isAsked ? { recipients, discloseHistoryDigest } : null,
  };
  if (out === '-') {
    await toStandardOutput(context, service, exported);
    return EXIT.done;
  }
  const taken = await take(context, service, { ...exported, path: out }, force);
  const { path } = taken;
  terminal.result({ changed: true, file: path, ...fileValue(name, taken) }, () => fileText(name, taken));
  terminal.say(`\nTo check it later: kl archive verify ${shellWord(path)}`);
  return EXIT.done;
}

type Connected = Awaited<ReturnType<typeof connect>>;

async function take(
  { terminal, signal, identity }: Context,
  service: Connected,
  exported: Parameters<typeof exportState>[1],
  replace: boolean,
): Promise<ExportedFile> {
  using progress = await Progress.on(terminal);
  // Waited for here: the progress ends with this function.
  return await exportState(service, exported, {
    replace,
    signal,
    identity,
    work: progress.begin(exported.name),
  });
}

/** Verified before the first byte is given out: nobody behind a pipe could take it back. */
async function toStandardOutput(
  context: Context,
  service: Connected,
  exported: Omit<Parameters<typeof exportState>[1], 'path'>,
): Promise<void> {
  await using aside = await temporaryDirectory();
  const path = join(aside.path, 'out.klstate');
  const asIs = { ...exported, isNamedByKind: false, path };
  const { historyDigest } = await take(context, service, asIs, true);
  await pipeline(createReadStream(path), process.stdout, { end: false });
  context.terminal.say(`History digest ${historyDigest}`);
}

/** What was exported, in the service's names. */
function fileValue(name: string, { archive, historyDigest, sha256, sizeBytes }: ExportedFile) {
  return {
    name: archive?.manifest.state.label ?? name,
    versionCount: archive?.counts.versions ?? null,
    currentSerial: archive?.manifest.state.currentSerial ?? null,
    historyDigest,
    sha256,
    sizeBytes,
  };
}

function fileText(name: string, { path, archive, historyDigest, sizeBytes }: ExportedFile): string {
  return pairs([
    ['File', path],
    ['State', archive?.manifest.state.label ?? name],
    [
      'Versions',
      archive
        ? `${archive.counts.versions}, current serial ${archive.manifest.state.currentSerial}`
        : undefined,
    ],
    ['Size', bytesText(sizeBytes)],
    ['History digest', historyDigest],
    [
      'Verified',
      archive
        ? 'yes, from the first byte to the last'
        : 'as the file that the service made; it is encrypted, and no key was given to look into it',
    ],
  ]);
}
