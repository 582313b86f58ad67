import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { decodeJwt } from 'jose';
import { loadOrCreateDevelopmentKey } from '../../src/auth/development-key.ts';
import { createJwtVerifier } from '../../src/auth/jwt-verifier.ts';

const SCRIPT = resolve(import.meta.dirname, '../../src/cli/token.ts');

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'token-cli-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true });
});

interface Outcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(args: string[], environment: Record<string, string> = {}): Promise<Outcome> {
  return new Promise((settle) => {
    const env = { DATA_DIR: directory, ...environment };
    execFile(process.execPath, [SCRIPT, ...args], { env }, (error, stdout, stderr) => {
      settle({ exitCode: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
    });
  });
}

async function principalOf(token: string) {
  const verifier = createJwtVerifier({
    developmentKey: await loadOrCreateDevelopmentKey(directory),
    jwks: null,
  });
  return verifier.verify(token.trim());
}

describe('the token command', () => {
  test('prints one token, and nothing else, that the service accepts', async () => {
    const { exitCode, stdout, stderr } = await run([]);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    expect(await principalOf(stdout)).toMatchObject({
      subject: 'dev@localhost',
      actor: 'dev@localhost',
      scopes: new Set(['state.read', 'state.export', 'state.import']),
      workspace: null,
      environment: null,
      statePatterns: null,
    });
    const { iat = 0, exp } = decodeJwt(stdout.trim());
    expect(exp).toBe(iat + 3600);
  });

  test('puts what was asked for into the token', async () => {
    const { stdout } = await run([
      ...['--scope', 'state.read state.raw.read', '--states', 'prod/* dev/network', '--ttl', '7d'],
      ...['--workspace', 'ws_1', '--environment', 'env_1', '--subject', 'ada'],
    ]);
    expect(await principalOf(stdout)).toMatchObject({
      subject: 'ada',
      actor: 'ada',
      scopes: new Set(['state.read', 'state.raw.read']),
      workspace: 'ws_1',
      environment: 'env_1',
      statePatterns: ['prod/*', 'dev/network'],
    });
    const { iat = 0, exp } = decodeJwt(stdout.trim());
    expect(exp).toBe(iat + 7 * 86400);
  });

  test('makes one key when processes start at the same time', async () => {
    const outcomes = await Promise.all([run([]), run([]), run([]), run([])]);
    const principals = await Promise.all(outcomes.map(({ stdout }) => principalOf(stdout)));
    expect(principals.map((principal) => principal?.subject)).toEqual(Array(4).fill('dev@localhost'));
  });

  test.each<[args: string[], told: string]>([
    [['--scope', 'state.raed'], 'state.raed'],
    [['--ttl', '1 hour'], '--ttl'],
    [['--ttl', '0s'], '--ttl'],
    [['--workspace', 'ws_1'], '--environment'],
    [['--environment', 'env_1'], '--workspace'],
    [['--workspace', 'ws_1/env_2', '--environment', 'env_1'], 'workspace'],
    [['--states', 'a*b'], 'states'],
    [['--subject', ''], 'sub'],
    [['--unknown'], '--unknown'],
    [['state.read'], 'state.read'],
    [['--scope'], '--scope'],
  ])('refuses %j with one line and exit code 2', async (args, told) => {
    const { exitCode, stdout, stderr } = await run(args);
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain(told);
    expect(stderr).toMatch(/^[^\n]+\n$/);
  });

  test('makes no token that the service would refuse', async () => {
    const { exitCode, stdout, stderr } = await run([], {
      AUTH_DEV_KEY: 'false',
      AUTH_JWKS_URL: 'https://issuer.example/jwks',
      AUTH_ISSUER: 'https://issuer.example',
      AUTH_AUDIENCE: 'state-archive',
    });
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr).toContain('AUTH_DEV_KEY');
  });

  test.each([
    [{ npm_config_scope: 'state.read' }, 'scope'],
    [{ npm_config_states: 'true', npm_config_ttl: 'true' }, 'states'],
    [{ npm_config_subject: 'bob' }, 'subject'],
  ])('refuses options that npm kept for itself, and gives no wider token: %j', async (kept, option) => {
    const { exitCode, stdout, stderr } = await run([], { npm_lifecycle_event: 'token', ...kept });
    expect([exitCode, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`npm run -s token -- --${option}`);
  });

  test("is not disturbed by npm's own setting of the name scope", async () => {
    const { exitCode } = await run([], { npm_lifecycle_event: 'token', npm_config_scope: '@acme' });
    expect(exitCode).toBe(0);
  });
});
