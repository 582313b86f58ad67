import { pipeline } from 'node:stream/promises';
import { present } from '../../base/invariant.ts';
import { named } from '../archive-input.ts';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit, failure, type KlError } from '../endings.ts';
import { refuseExisting, writePrivateFile } from '../files.ts';
import { shown } from '../progress.ts';
import { readVersion } from '../read-version.ts';
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
  const { damage, found, whole } = await shown(terminal, path, (work) =>
    readVersion(path, options.version, context, work),
  );
  if (damage !== null && !salvage) throw named(path, damage);
  if (found === null) {
    throw missing(path, present(damage, 'a whole archive holds each of its versions'), whole);
  }
  const { version, bytes } = found;
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

/** Of a version that stands behind the damage. */
function missing(path: string, damage: Error, whole: readonly bigint[]): KlError {
  return failure('VERSION_NOT_FOUND', `${path}: ${damage.message}, before the version that was asked for.`, {
    advice:
      whole.length === 0
        ? 'No version stands before the damage.'
        : `Whole, though unproven: ${counted(whole.length, 'version')}, serial ${whole[0]} to ${whole.at(-1)}. Ask for one with --version.`,
  });
}
