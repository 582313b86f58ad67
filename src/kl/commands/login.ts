import { addAbortSignal } from 'node:stream';
import type { CommonOptions, Context } from '../context.ts';
import { credentialsPath, findEndpoint, keepToken } from '../credentials.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { Service } from '../service.ts';
import { callerOf } from './whoami.ts';

/** Longer than any credential that the service accepts. */
const MAX_TOKEN_CHARACTERS = 16_384;

/** `kl login`: keeps a token, once the service has accepted it. */
export async function run(context: Context, _options: CommonOptions): Promise<Exit> {
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
  if (terminal.isInteractive) return terminal.ask('Token (it is not shown): ', 'KL_TOKEN', signal, true);
  let text = '';
  for await (const chunk of addAbortSignal(signal, process.stdin.setEncoding('utf8'))) {
    text += chunk;
    if (text.length > MAX_TOKEN_CHARACTERS) break;
  }
  return text;
}
