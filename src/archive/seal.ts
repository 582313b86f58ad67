import { open } from 'node:fs/promises';
import { Encrypter, Stanza } from 'age-encryption';
import { Digested } from '../base/digested.ts';
import { readArchiveFile } from './archive-file.ts';

/** Most keys that one file is encrypted for. */
export const MAX_RECIPIENTS = 32;

/** A post-quantum one has some two thousand characters. */
const MAX_RECIPIENT_CHARACTERS = 4096;

/** The line of an age header that tells a history digest: the one thing that can be read without a key. */
const DIGEST_STANZA = 'kilolock-state-archive/history-digest';

/** For whom a file is encrypted. */
export interface Sealing {
  /** age recipients, at least one; see {@link isRecipient}. */
  readonly recipients: readonly string[];
  /** What the file tells whoever has no key; null: nothing. */
  readonly disclosedDigest: string | null;
}

/** Whether a text is an age recipient (`age1…`): a public key that files are encrypted for. */
export function isRecipient(text: string): boolean {
  if (text.length > MAX_RECIPIENT_CHARACTERS) return false;
  try {
    new Encrypter().addRecipient(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Encrypts a file with age, piece by piece, into a new file (mode 0600) at `target`. After a failure what there is of it is left
 * to the caller.
 *
 * @param signal ends it with its reason.
 * @returns the digest (lower-case hex) and the length of the encrypted file.
 */
export async function sealFile(
  source: string,
  target: string,
  { recipients, disclosedDigest }: Sealing,
  signal: AbortSignal,
): Promise<{ readonly sha256: string; readonly sizeBytes: bigint }> {
  const encrypter = new Encrypter();
  for (const recipient of recipients) encrypter.addRecipient(recipient);
  if (disclosedDigest !== null) {
    // Nobody who could open the file: a line of its header that other programs pass over, and that its MAC protects.
    const line = new Stanza([DIGEST_STANZA, disclosedDigest], new Uint8Array());
    encrypter.addRecipient({ wrapFileKey: () => [line] });
  }
  const sealed = new Digested(
    await encrypter.encrypt(ReadableStream.from(readArchiveFile(source, { signal }))),
  );
  await using file = await open(target, 'wx', 0o600);
  // Each piece waits for the disk: nobody waits for more than the encryption of 64 KiB.
  for await (const piece of sealed) {
    signal.throwIfAborted();
    await file.writeFile(piece);
  }
  await file.sync();
  return { sha256: sealed.sha256(), sizeBytes: BigInt(sealed.length) };
}
