import { hash } from 'node:crypto';
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isErrno } from '../base/errno.ts';
import { failure, KlError } from './endings.ts';
import { isSystemError, writePrivateFile } from './files.ts';

/** What `kl login` keeps: the endpoint it was last told, and a token for each. */
interface Kept {
  readonly endpoint: string | null;
  readonly tokens: Readonly<Record<string, string>>;
}

/** Where `kl login` keeps tokens. Kilolock's own `kl` keeps its settings elsewhere. */
export function credentialsPath(): string {
  const { XDG_CONFIG_HOME } = process.env;
  return join(XDG_CONFIG_HOME || join(homedir(), '.config'), 'kilolock-state-archive', 'credentials.json');
}

/**
 * The address and the token to talk with: `KL_ENDPOINT` and `KL_TOKEN`, or what `kl login` kept.
 *
 * @throws KlError USAGE without an address, NO_CREDENTIAL without a token for it.
 */
export async function findCredential(): Promise<{ readonly endpoint: string; readonly token: string }> {
  const kept = await readKept();
  const endpoint = endpointOf(kept.endpoint);
  const token = process.env.KL_TOKEN || kept.tokens[endpoint];
  if (token !== undefined) return { endpoint, token };
  throw failure('NO_CREDENTIAL', `There is no token for ${endpoint}.`, {
    advice: 'Set KL_TOKEN, or run kl login.',
  });
}

/**
 * The address to talk to: `KL_ENDPOINT`, or the one of the last login.
 *
 * @throws KlError USAGE.
 */
export async function findEndpoint(): Promise<string> {
  return endpointOf((await readKept()).endpoint);
}

function endpointOf(kept: string | null): string {
  const given = process.env.KL_ENDPOINT || kept;
  if (given === null) {
    throw failure(
      'USAGE',
      'KL_ENDPOINT is not set: the address of the service, as http://127.0.0.1:4001/graphql.',
    );
  }
  const url = URL.parse(given);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw failure('USAGE', 'KL_ENDPOINT is no address of a service, as http://127.0.0.1:4001/graphql.');
  }
  return url.href;
}

/** Whose token it is: a JWT is renewed now and then for the same subject, and any other token is one by itself. */
export function callerOf(token: string): string {
  try {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    return JSON.stringify([claims.iss, claims.sub]);
  } catch {
    return hash('sha256', token);
  }
}

/** Keeps a token, for its owner alone. */
export async function keepToken(endpoint: string, token: string): Promise<void> {
  const path = credentialsPath();
  const { tokens } = await readKept();
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await chmod(dirname(path), 0o700);
  const kept: Kept = { endpoint, tokens: { ...tokens, [endpoint]: token } };
  await writePrivateFile(path, `${JSON.stringify(kept, null, 2)}\n`, { replace: true });
}

async function readKept(): Promise<Kept> {
  const path = credentialsPath();
  try {
    if (((await stat(path)).mode & 0o077) !== 0) {
      throw failure('NO_CREDENTIAL', `${path} is open to others than its owner.`, {
        advice: 'Make it private with chmod 600, and get another token if somebody may have read it.',
      });
    }
    const { endpoint, tokens } = JSON.parse(await readFile(path, 'utf8')) as Kept;
    return { endpoint, tokens: { ...tokens } };
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return { endpoint: null, tokens: {} };
    if (error instanceof KlError || isSystemError(error)) throw error;
    throw failure('NO_CREDENTIAL', `${path} is no longer what kl login wrote.`, {
      advice: 'Remove it, and run kl login.',
      cause: error,
    });
  }
}
