import { pipeline } from 'node:stream/promises';
import { named } from '../archive-input.ts';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { refuseExisting, writePrivateFile } from '../files.ts';
import { shown } from '../progress.ts';
import { type RawStateBytes, readVersion, type VersionReading } from '../read-version.ts';
import { bytesText, counted, visible } from '../texts.ts';

interface Options extends CommonOptions {
  readonly version: string;
  readonly out: string;
  readonly force?: boolean;
  readonly salvage?: boolean;
}

/** `kl archive extract`: one raw state, byte for byte. Nothing is given out before the whole archive is verified. */
export async function run(context: Context, options: Options, path: string): Promise<Exit> {
  const { terminal } = context;
  const { out, force = false, salvage = false } = options;
  if (out !== '-' && !force) await refuseExisting(out);
  const reading = await shown(terminal, path, (work) => readVersion(path, options.version, context, work));
  const { damage } = reading;
  const { version, bytes } = reading.damage === null ? reading.found : salvaged(path, reading, salvage);
  if (out === '-') await pipeline([bytes], process.stdout, { end: false });
  else await writePrivateFile(out, bytes, { replace: force });
  terminal.say(
    `Serial ${version.serial}, ${bytesText(bytes.length)}, written ${version.createdAt} by ${visible(version.createdBy ?? 'nobody on record')}.`,
  );
  if (damage === null) return EXIT.done;
  terminal.warn(
    `This state is unproven: ${visible(damage.message)}. It is what the damaged file holds, and may not be what was written.`,
  );
  return EXIT.badArchive;
}

/** What a damaged archive still holds, where that was asked for. */
function salvaged(
  path: string,
  { damage, found, whole }: Extract<VersionReading, { readonly damage: Error }>,
  isAskedFor: boolean,
): RawStateBytes {
  if (!isAskedFor) throw named(path, damage);
  if (found !== null) return found;
  throw failure('VERSION_NOT_FOUND', `${path}: ${damage.message}, before the version that was asked for.`, {
    advice:
      whole.length === 0
        ? 'No version stands before the damage.'
        : `Whole, though unproven: ${counted(whole.length, 'version')}, serial ${whole[0]} to ${whole.at(-1)}. Ask for one with --version.`,
  });
}
