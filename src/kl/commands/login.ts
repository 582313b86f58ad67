import { on } from 'node:events';
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
