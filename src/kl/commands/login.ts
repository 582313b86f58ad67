import { on } from 'node:events';
import type { CommonOptions, Context } from '../context.ts';
import { credentialsPath, findCredential, findEndpoint, keepToken } from '../credentials.ts';
import { DOCUMENTS } from '../documents.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { Service } from '../service.ts';
import { pairs } from '../tables.ts';

/** Longer than any credential that the service accepts. */
const MAX_TOKEN_CHARACTERS = 16_384;

/** `kl login`: keeps a token, once the service has accepted it. */
export async function login(context: Context, _options: CommonOptions): Promise<Exit> {
  const { terminal, signal } = context;
  const endpoint = await findEndpoint();
  const path = credentialsPath();
  // Said before it is done.
  process.stderr.write(`The token for ${endpoint} will be kept in ${path}, for you alone (0600).\n`);
  const token = (process.env.KL_TOKEN || (await tokenFromInput(context))).trim();
  if (token === '' || token.length > MAX_TOKEN_CHARACTERS || !/^[\x21-\x7e]+$/.test(token)) {
    throw failure('NO_CREDENTIAL', 'That is no token.');
  }
  const caller = await callerOf(new Service(endpoint, token, signal));
  await keepToken(endpoint, token);
  terminal.result({ endpoint, file: path, ...caller }, () => `Kept. kl whoami says what it may.`);
  return EXIT.done;
}

async function tokenFromInput({ terminal, signal }: Context): Promise<string> {
  const { stdin } = process;
  // The terminal shows nothing from before anybody is asked to type.
  if (terminal.isInteractive) {
    stdin.setRawMode(true);
    process.stderr.write('Token (it is not shown): ');
  }
  let typed = '';
  try {
    for await (const [chunk] of on(stdin.setEncoding('utf8'), 'data', { signal, close: ['end'] })) {
      for (const character of String(chunk)) {
        if (!terminal.isInteractive) typed += character;
        else if (character === '\r' || character === '\n') return typed;
        else if (character === '\u0003' || character === '\u0004')
          throw failure('INTERRUPTED', 'Interrupted.');
        else typed = character === '\u007f' ? typed.slice(0, -1) : typed + character;
      }
      if (typed.length > MAX_TOKEN_CHARACTERS) return typed;
    }
    return typed;
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    stdin.pause();
    if (terminal.isInteractive) {
      stdin.setRawMode(false);
      process.stderr.write('\n');
    }
  }
}

/** `kl whoami`: who the service takes the token for, and what it permits. */
export async function whoAmI({ terminal, signal }: Context, _options: CommonOptions): Promise<Exit> {
  const { endpoint, token } = await findCredential();
  const caller = await callerOf(new Service(endpoint, token, signal));
  terminal.result({ endpoint, ...caller }, () =>
    pairs([
      ['Endpoint', endpoint],
      ['Subject', caller.subject],
      ['Name', caller.actor],
      ['Scopes', caller.scopes.join(' ')],
      ['Workspace', caller.workspaceId ?? 'none: say --workspace'],
      ['Environment', caller.environmentId ?? 'none: say --environment'],
      ['States', caller.statePatterns?.join(' ') ?? 'all'],
      ['Expires', caller.expiresAt ?? 'when it is revoked'],
    ]),
  );
  return EXIT.done;
}

interface Caller {
  readonly subject: string;
  readonly actor: string;
  readonly scopes: readonly string[];
  readonly workspaceId: string | null;
  readonly environmentId: string | null;
  readonly statePatterns: readonly string[] | null;
  readonly expiresAt: string | null;
}

/** @throws KlError when the service does not accept the credential. */
async function callerOf(service: Service): Promise<Caller> {
  const { stateArchiveCaller } = await service.ask<{ stateArchiveCaller: Caller | null }>(
    DOCUMENTS.caller,
    {},
  );
  if (stateArchiveCaller !== null) return stateArchiveCaller;
  throw failure('UNKNOWN_ANSWER', 'The service does not say who the credential is.');
}
