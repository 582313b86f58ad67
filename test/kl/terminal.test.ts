import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { loadSampleHistory } from '../../src/development/sample-history.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { klAtTerminal, klJson } from './support/kl.ts';
import { type HarmfulProxy, startProxy } from './support/proxy.ts';

let service: TestService;
let proxy: HarmfulProxy;
let directory: string;
let env: Record<string, string>;

beforeAll(async () => {
  proxy = await startProxy();
  service = await startTestService({ PUBLIC_URL: proxy.url });
  proxy.target = service.url;
  await loadSampleHistory(service.database);
});
afterAll(async () => {
  await proxy.close();
  await service.stop();
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kl-terminal-'));
  const token = await service.token({
    scopes: ['state.read', 'state.export', 'state.import', 'state.overwrite'],
  });
  env = { KL_ENDPOINT: `${proxy.url}/graphql`, KL_TOKEN: token, HOME: directory };
});
afterEach(() => rm(directory, { recursive: true }));

const atTerminal = (...args: string[]) => klAtTerminal(args, { env, cwd: directory });
const exportSample = () =>
  klJson(['export', 'state', 'demo/network', '-o', 'n.klstate'], { env, cwd: directory });

describe('at a terminal', () => {
  test('a transfer has a bar with its share and its bytes, which is taken away at the end, and Ctrl-C ends it', async () => {
    proxy.interfere({
      matches: ({ url }) => url?.startsWith('/archives/') ?? false,
      after: 100,
      how: 'hold',
    });
    const held = atTerminal('export', 'state', 'demo/network', '-o', 'n.klstate');
    await held.shown(/\[=* +\] {2}demo\/network: downloading {2}\d+% {2}\d+ bytes of [\d.]+ kB/);
    held.type('\u0003');
    const { exitCode, screen } = await held.ended;
    expect(exitCode).toBe(130);
    expect(stripVTControlCharacters(screen)).toContain('INTERRUPTED');

    const whole = await atTerminal('export', 'state', 'demo/network', '-o', 'n.klstate').ended;
    expect(whole.exitCode).toBe(0);
    const last = stripVTControlCharacters(whole.screen.split('\u001b[0J').at(-1) ?? '');
    expect(last).not.toContain('[=');
    expect(last).toContain('To check it later');
    // The cursor is shown again.
    expect(whole.screen.lastIndexOf('\u001b[?25h')).toBeGreaterThan(whole.screen.lastIndexOf('\u001b[?25l'));
  });

  test('an import shows what goes where, and does nothing until it is told yes', async () => {
    await exportSample();
    const args = ['import', 'archive', 'n.klstate', '--as', 'asked', '--allow-shared-lineage'];
    const declined = atTerminal(...args);
    await declined.shown('Import it? [y/N]');
    declined.type('\r');
    const { exitCode, screen } = await declined.ended;
    expect([exitCode, screen]).toEqual([3, expect.stringMatching(/^To +asked/m)]);
    expect(screen).toContain('NOT_CONFIRMED');
    const accepted = atTerminal(...args);
    await accepted.shown('Import it? [y/N]');
    accepted.type('y\r');
    const done = await accepted.ended;
    expect([done.exitCode, done.screen]).toEqual([0, expect.stringMatching(/^Digest equal +yes/m)]);
  });

  test('an overwrite wants the name typed', async () => {
    await exportSample();
    await klJson(['import', 'archive', 'n.klstate', '--as', 'typed', '--allow-shared-lineage', '--yes'], {
      env,
      cwd: directory,
    });
    const args = ['import', 'archive', 'n.klstate', '--as', 'typed', '--overwrite', '--allow-shared-lineage'];
    const mistyped = atTerminal(...args);
    await mistyped.shown('Type its name to go on:');
    mistyped.type('yes\r');
    expect((await mistyped.ended).exitCode).toBe(3);
    const typed = atTerminal(...args);
    await typed.shown('replaces the history of typed, 10 versions');
    typed.type('typed\r');
    expect((await typed.ended).exitCode).toBe(0);
  });

  test.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ])('a question is ended by %s, and nothing was done', async (_name, key) => {
    await exportSample();
    const asked = atTerminal('import', 'archive', 'n.klstate', '--as', 'never', '--allow-shared-lineage');
    await asked.shown('Import it? [y/N]');
    asked.type(key);
    expect((await asked.ended).exitCode).toBe(130);
    expect((await atTerminal('status', 'never').ended).exitCode).toBe(3);
  });

  test('a token is typed unseen', async () => {
    const { KL_TOKEN: token = '', ...rest } = env;
    const login = klAtTerminal(['login'], { env: rest });
    await login.shown('it is not shown');
    login.type(`${token}\r`);
    const { exitCode, screen } = await login.ended;
    expect([exitCode, screen]).toEqual([0, expect.not.stringContaining(token)]);
    const kept = await readFile(join(directory, '.config/kilolock-state-archive/credentials.json'), 'utf8');
    expect(Object.values(JSON.parse(kept).tokens)).toEqual([token]);
  });

  test('an error is coloured, unless NO_COLOR says otherwise', async () => {
    const red = '\u001b[31m';
    expect((await atTerminal('status', 'no-such-state').ended).screen).toContain(red);
    const plain = await klAtTerminal(['status', 'no-such-state'], { env: { ...env, NO_COLOR: '1' } }).ended;
    expect(plain.screen).not.toContain(red);
  });
});
