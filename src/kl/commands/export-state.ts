import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { archivePathOf } from '../archive-index.ts';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { type Exported, exportState } from '../export-state.ts';
import { refuseExisting, temporaryDirectory } from '../files.ts';
import { shown } from '../progress.ts';
import { connect } from '../service.ts';
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
  const { terminal, identity } = context;
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
  const what = { name, historyDigest, identity, sealing: { recipients, discloseHistoryDigest } };
  const take = (where: Pick<Exported, 'path' | 'replace' | 'isNamedByKind'>) =>
    shown(terminal, name, (work) => exportState(service, { ...what, ...where }, work));
  if (out === '-') {
    // Verified before the first byte is given out: nobody behind a pipe could take it back.
    await using aside = await temporaryDirectory();
    const path = join(aside.path, 'out.klstate');
    const taken = await take({ path, replace: true });
    await pipeline(createReadStream(path), process.stdout, { end: false });
    terminal.say(`History digest ${taken.historyDigest}`);
    return EXIT.done;
  }
  // A name that somebody gave is the file's name.
  const taken = await take({ path: out, replace: force, isNamedByKind: options.out === undefined });
  const { path, archive } = taken;
  const { state } = archive?.manifest ?? {};
  terminal.result(
    {
      changed: true,
      file: path,
      name: state?.label ?? name,
      versionCount: archive?.counts.versions ?? null,
      currentSerial: state?.currentSerial ?? null,
      historyDigest: taken.historyDigest,
      sha256: taken.sha256,
      sizeBytes: taken.sizeBytes,
    },
    () =>
      pairs({
        File: path,
        State: state?.label ?? name,
        Versions: archive
          ? `${archive.counts.versions}, current serial ${archive.manifest.state.currentSerial}`
          : undefined,
        Size: bytesText(taken.sizeBytes),
        'History digest': taken.historyDigest,
        Verified: archive
          ? 'yes, from the first byte to the last'
          : 'as the file that the service made; it is encrypted, and no key was given to look into it',
      }),
  );
  terminal.say(`\nTo check it later: kl archive verify ${shellWord(path)}`);
  return EXIT.done;
}
