import { on } from 'node:events';
import type { CommonOptions, Context } from '../context.ts';
import { credentialsPath, findCredential, findEndpoint, jwtClaims, keepToken } from '../credentials.ts';
import { DOCUMENTS } from '../documents.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { Service } from '../service.ts';
import { pairs } from '../tables.ts';
import { visible } from '../texts.ts';

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
  await accepted(new Service(endpoint, token, signal));
  await keepToken(endpoint, token);
  terminal.result({ endpoint, file: path, ...claimsOf(token) }, () => `Kept. kl whoami says what it may.`);
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

/** `kl whoami`: what the token says of itself, and whether the service accepts it. */
export async function whoAmI({ terminal, signal }: Context, _options: CommonOptions): Promise<Exit> {
  const { endpoint, token } = await findCredential();
  await accepted(new Service(endpoint, token, signal));
  const claims = claimsOf(token);
  terminal.result({ endpoint, accepted: true, ...claims }, () =>
    pairs([
      ['Endpoint', endpoint],
      ['Accepted', 'yes'],
      [
        'Token',
        'claims' in claims
          ? 'a JWT'
          : "one of Kilolock's own: its roles say what it may, and Kilolock when it ends",
      ],
      ...('claims' in claims
        ? ([
            ['Subject', claims.claims.subject],
            ['Scopes', claims.claims.scopes.join(' ')],
            ['Workspace', claims.claims.workspace],
            ['Environment', claims.claims.environment],
            ['States', claims.claims.states?.join(' ') ?? 'all'],
            ['Expires', claims.claims.expiresAt],
          ] as const)
        : []),
    ]),
  );
  return EXIT.done;
}

/** @throws KlError when the service does not accept the credential. */
async function accepted(service: Service): Promise<void> {
  // Whatever it may see: a credential that is not accepted gets no answer at all.
  await service.ask(DOCUMENTS.operations, { first: 1, filter: null });
}

interface Claims {
  readonly subject: string | null;
  readonly scopes: readonly string[];
  readonly workspace: string | null;
  readonly environment: string | null;
  readonly states: readonly string[] | null;
  readonly expiresAt: string | null;
}

/** What a JWT says of itself. The service is the one to verify it. */
function claimsOf(token: string): { readonly claims: Claims } | Record<string, never> {
  const said = jwtClaims(token);
  if (said === null) return {};
  const textOf = (value: unknown) => (typeof value === 'string' ? visible(value) : null);
  const wordsOf = (value: unknown) =>
    (typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value.map(String) : [])
      .filter((word) => word !== '')
      .map(visible);
  return {
    claims: {
      subject: textOf(said.sub),
      scopes: wordsOf(said.scope),
      workspace: textOf(said.workspace),
      environment: textOf(said.environment),
      states: said.states === undefined ? null : wordsOf(said.states),
      expiresAt: typeof said.exp === 'number' ? new Date(said.exp * 1000).toISOString() : null,
    },
  };
}
