import { readFile } from 'node:fs/promises';
import { readVerificationKeys, type SignatureTrust, TRUST_NOBODY } from '../archive/signing-keys.ts';
import { failure } from './endings.ts';
import { unreadable } from './files.ts';

/**
 * Those whose signatures count, by a file of public keys.
 *
 * @param path none: nobody's.
 * @throws KlError FILE_UNUSABLE.
 */
export async function readTrust(path: string | undefined): Promise<SignatureTrust> {
  if (path === undefined) return TRUST_NOBODY;
  const keys = readVerificationKeys(await readFile(path, 'utf8').catch(unreadable(path)));
  if (keys !== null) return { keys, isRequired: false };
  throw failure('FILE_UNUSABLE', `${path} holds no public Ed25519 keys in PEM, one behind the other.`);
}
