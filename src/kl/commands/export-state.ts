import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { VerifiedArchive } from '../../archive/reader.ts';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { exportState } from '../export-state.ts';
import { refuseExisting } from '../private-file.ts';
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
}

/** `kl export state`: one state's whole history to one verified file. */
export async function exportOneState(context: Context, options: Options, name: string): Promise<Exit> {
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
  const exported = { name, historyDigest };
  if (out === '-') {
    await toStandardOutput(context, service, exported);
    return EXIT.done;
  }
  const archive = await take(context, service, { ...exported, path: out }, force);
  terminal.result({ changed: true, file: out, ...archiveValue(archive) }, () => archiveText(out, archive));
  terminal.say(`\nTo check it later: kl archive verify ${shellWord(out)}`);
  return EXIT.done;
}

type Connected = Awaited<ReturnType<typeof connect>>;

async function take(
  { terminal, signal }: Context,
  service: Connected,
  exported: Parameters<typeof exportState>[1],
  replace: boolean,
): Promise<VerifiedArchive> {
  using progress = await Progress.on(terminal);
  // Waited for here: the progress ends with this function.
  return await exportState(service, exported, { replace, signal, work: progress.begin(exported.name) });
}

/** Verified before the first byte is given out: nobody behind a pipe could take it back. */
async function toStandardOutput(
  context: Context,
  service: Connected,
  exported: { readonly name: string; readonly historyDigest: string },
): Promise<void> {
  const aside = await mkdtemp(join(tmpdir(), 'kl-'));
  try {
    const path = join(aside, 'out.klstate');
    const { historyDigest } = await take(context, service, { ...exported, path }, true);
    await pipeline(createReadStream(path), process.stdout, { end: false });
    context.terminal.say(`History digest ${historyDigest}`);
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

/** What an archive is, in the service's names. */
export function archiveValue({ manifest, counts, historyDigest, sha256, sizeBytes }: VerifiedArchive) {
  return {
    name: manifest.state.label,
    versionCount: counts.versions,
    currentSerial: manifest.state.currentSerial,
    historyDigest,
    sha256,
    sizeBytes,
  };
}

function archiveText(path: string, { manifest, counts, historyDigest, sizeBytes }: VerifiedArchive): string {
  return pairs([
    ['File', path],
    ['State', manifest.state.label],
    ['Versions', `${counts.versions}, current serial ${manifest.state.currentSerial}`],
    ['Size', bytesText(sizeBytes)],
    ['History digest', historyDigest],
    ['Verified', 'yes, from the first byte to the last'],
  ]);
}
