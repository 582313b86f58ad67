/**
 * @file Prints a token signed with the development key of `DATA_DIR`, and nothing else on standard output:
 *
 *     npm run -s token -- --scope "state.read state.export" --states 'prod/*' --ttl 1h
 *
 * It exits with 2 when the command line cannot be used, and 1 when no token would be accepted or none can be made.
 */

import { parseArgs } from 'node:util';
import {
  type DevelopmentTokenClaims,
  loadOrCreateDevelopmentKey,
  signDevelopmentToken,
} from '../auth/development-key.ts';
import { SCOPES } from '../auth/principal.ts';
import { ClaimsError } from '../auth/token-claims.ts';
import { ConfigError, duration, readConfig } from '../config.ts';

/** The command line cannot be used. */
class UsageError extends Error {
  override readonly name = 'UsageError';
}

const USAGE =
  'token [--scope "state.read …"] [--workspace W --environment E] [--states "prod/* …"] [--ttl 15m|1h|7d] [--subject S]';

// The scopes that show secrets, replace histories or reach other workspaces have to be asked for by name.
const DEFAULT_SCOPES = ['state.read', 'state.export', 'state.import'];

const OPTIONS = {
  scope: { type: 'string', default: DEFAULT_SCOPES.join(' ') },
  workspace: { type: 'string' },
  environment: { type: 'string' },
  states: { type: 'string' },
  ttl: { type: 'string', default: '1h' },
  subject: { type: 'string', default: 'dev@localhost' },
} as const;

try {
  process.stdout.write(`${await token(process.argv.slice(2))}\n`);
} catch (error) {
  const isUsage = error instanceof UsageError || error instanceof ClaimsError;
  process.stderr.write(
    `${error instanceof Error ? error.message : error}${isUsage ? `; usage: ${USAGE}` : ''}\n`,
  );
  process.exitCode = isUsage ? 2 : 1;
}

async function token(args: string[]): Promise<string> {
  refuseOptionsLostToNpm(process.env);
  const options = parseOptions(args);
  const config = readConfig(process.env);
  if (!config.auth.developmentKey) {
    throw new ConfigError(
      'The service would refuse the token: set AUTH_DEV_KEY=true to accept development tokens',
    );
  }
  return signDevelopmentToken(await loadOrCreateDevelopmentKey(config.dataDirectory), options);
}

function parseOptions(args: string[]): DevelopmentTokenClaims {
  const { scope, states, ttl, ...others } = parsedArgs(args);
  return {
    ...others,
    scopes: scopesIn(scope),
    states: states === undefined ? undefined : wordsIn(states),
    ttlSeconds: secondsIn(ttl),
  };
}

/** npm keeps options for itself that do not stand behind `--`, and passes on their values at best: the token would be another. */
function refuseOptionsLostToNpm(env: Readonly<Record<string, string | undefined>>): void {
  const isLost = (name: string) => {
    const value = env[`npm_config_${name}`];
    // npm has a setting of the name `scope` itself: the scope of an organisation's packages.
    return value !== undefined && !(name === 'scope' && value.startsWith('@'));
  };
  const lost = env.npm_lifecycle_event === 'token' ? Object.keys(OPTIONS).filter(isLost) : [];
  if (lost.length === 0) return;
  throw new UsageError(
    `npm kept --${lost.join(' and --')} for itself; put "--" before the options, as in: npm run -s token -- --${lost[0]} …`,
  );
}

function parsedArgs(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS }).values;
  } catch (error) {
    throw new UsageError(
      error instanceof Error ? error.message.replaceAll('\n', ' ') : 'the arguments cannot be read',
    );
  }
}

function scopesIn(text: string): string[] {
  const scopes = wordsIn(text);
  const unknown = scopes.filter((scope) => !SCOPES.some((known) => known === scope));
  if (unknown.length > 0) {
    throw new UsageError(`--scope: no such scope: ${unknown.join(', ')}; there are ${SCOPES.join(', ')}`);
  }
  return scopes;
}

function secondsIn(text: string): number {
  const seconds = duration.safeParse(text);
  if (!seconds.success) throw new UsageError('--ttl: expected a duration such as 15m, 1h or 7d');
  return seconds.data;
}

function wordsIn(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
