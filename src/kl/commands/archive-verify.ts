import { readFile } from 'node:fs/promises';
import { REDACTED_FEATURE } from '../../archive/format.ts';
import type { VerifiedArchive } from '../../archive/reader.ts';
import { readVerificationKeys, type SignatureTrust, TRUST_NOBODY } from '../../archive/signing-keys.ts';
import type { CommonOptions, Context } from '../context.ts';
import { EXIT, type Exit, failure, KlError } from '../endings.ts';
import { unreadable } from '../files.ts';
import { Progress } from '../progress.ts';
import { checkArchive, type Soundness } from '../soundness.ts';
import { pairs } from '../tables.ts';
import { bytesText, counted, visible } from '../texts.ts';

interface Options extends CommonOptions {
  readonly against?: string;
  readonly keys?: string;
  readonly requireSignature?: boolean;
}

/** `kl archive verify`: whether files are complete, and whether what they hold could be restored. */
export async function run(context: Context, options: Options, paths: readonly string[]): Promise<Exit> {
  const { terminal, signal } = context;
  const { requireSignature = false } = options;
  if (requireSignature && options.keys === undefined) {
    throw failure('USAGE', '--require-signature goes with --keys: whose signature is required?');
  }
  const trust = options.keys === undefined ? TRUST_NOBODY : await readTrust(options.keys);
  const live = options.against === undefined ? null : await liveHistory(context, options.against);
  using progress = await Progress.on(terminal);
  const results: Result[] = [];
  let worst: Exit = EXIT.done;
  for (const path of paths) {
    using work = progress.begin(path);
    try {
      const soundness = await checkArchive(path, { ...context, trust }, work);
      const { complete, isValid } = soundness;
      const against = live && { ...live, same: complete?.historyDigest === live.historyDigest };
      results.push({ file: path, ...resultOf(soundness), ...(against && { against }) });
      const isUnsigned = requireSignature && complete?.signature?.verified !== true;
      if (complete === null || !isValid || isUnsigned) worst = EXIT.badArchive;
      else if (against?.same === false && worst === EXIT.done) worst = EXIT.failed;
    } catch (error) {
      // One file that cannot be read keeps no other from being verified.
      if (signal.aborted || !(error instanceof KlError)) throw error;
      results.push({ file: path, error: { code: error.code, message: error.message } });
      worst = worst === EXIT.badArchive ? worst : error.exit;
    }
  }
  progress[Symbol.dispose]();
  terminal.result(results, () => results.map(textOf).join('\n\n'));
  return worst;
}

/** Its 1 says that there is a difference. */
export const compares = ({ against }: Options) => against !== undefined;

/** Those whose signatures count, by a file of public keys. @throws KlError FILE_UNUSABLE. */
async function readTrust(path: string): Promise<SignatureTrust> {
  const keys = readVerificationKeys(await readFile(path, 'utf8').catch(unreadable(path)));
  if (keys !== null) return { keys, isRequired: false };
  throw failure('FILE_UNUSABLE', `${path} holds no public Ed25519 keys in PEM, one behind the other.`);
}

/** The history that a service holds. */
async function liveHistory(context: Context, name: string) {
  const { connect } = await import('../service.ts');
  const { historyOf } = await import('../states.ts');
  const { historyDigest } = await historyOf(await connect(context), name);
  return { name, historyDigest };
}

function resultOf({ complete, isValid, findings }: Soundness) {
  return {
    complete: complete !== null,
    valid: isValid,
    ...(complete && {
      name: complete.manifest.state.label,
      signature: complete.signature,
      redacted: complete.manifest.requiredFeatures.includes(REDACTED_FEATURE),
      historyDigest: complete.historyDigest,
      sha256: complete.sha256,
      sizeBytes: complete.sizeBytes,
      rawBytes: complete.rawBytes,
      versionCount: complete.counts.versions,
      tagCount: complete.counts.tags,
      eventCount: complete.counts.events,
      resourceSpanCount: complete.counts.resources,
    }),
    findings,
  };
}

type Result = { readonly file: string } & (
  | (ReturnType<typeof resultOf> & {
      readonly against?: Awaited<ReturnType<typeof liveHistory>> & { readonly same: boolean };
    })
  | { readonly error: { readonly code: string; readonly message: string } }
);

function textOf(result: Result): string {
  if ('error' in result) return pairs({ File: result.file, Error: result.error.message });
  const { file, complete, valid, findings, against } = result;
  const lines = [
    pairs({
      File: file,
      Complete: complete ? 'yes: every byte of every member is what was written' : 'NO',
      Valid: validText(complete, valid),
      Signed: complete ? signedText(result.signature) : undefined,
      Redacted: result.redacted ? 'yes: values were taken out, and no import takes it' : undefined,
      State: result.name,
      Versions: result.versionCount,
      'Raw states': result.rawBytes === undefined ? undefined : bytesText(result.rawBytes),
      'History digest': result.historyDigest,
      'File SHA-256': result.sha256,
      Against: against && `${against.name}: ${against.same ? 'the same history' : 'ANOTHER HISTORY'}`,
    }),
  ];
  for (const { severity, code, serial, versionsBefore, message, advice } of findings) {
    const where = serial === null ? '' : ` at serial ${serial}`;
    lines.push(
      `\n${severity}  ${code}${where}: ${visible(message)}`,
      ...(severity === 'WARNING'
        ? []
        : [
            `  ${counted(versionsBefore, 'version')} stood before it${complete ? '' : ', unproven: kl archive extract --salvage takes one out'}.`,
          ]),
      `  ${advice}`,
    );
  }
  return lines.join('\n');
}

function signedText(signature: VerifiedArchive['signature'] | undefined): string {
  if (!signature) return 'no';
  const keys = signature.keyIds.join(', ');
  return signature.verified ? `yes: by ${keys}` : `by ${keys}, which --keys does not name`;
}

function validText(complete: boolean, valid: boolean): string {
  if (!complete) return 'unknown: the archive is not complete';
  return valid ? 'yes: every document is one that Kilolock can hold' : 'NO: no import takes it as it is';
}
