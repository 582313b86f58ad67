import { named } from '../archive-input.ts';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit, KlError } from '../endings.ts';
import { refuseExisting } from '../files.ts';
import { shown } from '../progress.ts';
import { writeRedacted } from '../redacted-archive.ts';
import { checkArchive } from '../soundness.ts';
import { pairs } from '../tables.ts';
import { bytesText } from '../texts.ts';

interface Options extends CommonOptions {
  readonly out: string;
  readonly force?: boolean;
}

/** `kl archive redact`: an archive for somebody who may not see what is sensitive in it. */
export async function run(context: Context, options: Options, path: string): Promise<Exit> {
  const { terminal } = context;
  const { out, force = false } = options;
  if (!force) await refuseExisting(out);
  const { complete, written, values } = await shown(terminal, path, async (work) => {
    const { complete, isValid, findings } = await checkArchive(path, context, work);
    if (complete === null || !isValid) {
      const [finding] = findings;
      throw new KlError(finding?.code ?? 'ARCHIVE_CORRUPT', `${path}: ${finding?.message}`, {
        advice: 'Nothing was written: what is sensitive in it cannot be told. kl archive verify tells more.',
      });
    }
    const redacted = await writeRedacted(path, complete, out, context, work).catch((error: unknown) => {
      throw named(path, error);
    });
    return { complete, ...redacted };
  });
  const { state } = complete.manifest;
  terminal.result(
    {
      file: out,
      name: state.label,
      redactedValues: values,
      versionCount: written.counts.versions,
      historyDigest: written.historyDigest,
      sha256: written.sha256,
      sizeBytes: written.sizeBytes,
    },
    () =>
      pairs({
        File: out,
        State: state.label,
        Versions: written.counts.versions,
        'Taken out': `${values} values, over all versions`,
        Size: bytesText(written.sizeBytes),
        'History digest': `${written.historyDigest}, of what is left`,
      }),
  );
  terminal.say(
    '\nNo import takes it. What nobody marked and no name gives away is still there: names, addresses, tags, events and the other attributes. Look through it before you hand it over.',
  );
  return EXIT.done;
}
