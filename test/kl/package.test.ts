import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { atTerminal, KL } from './support/kl.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const GOLDEN = `${ROOT}test/archive/golden/v1.klstate`;
const run = promisify(execFile);

let directory: string;
/** As after `npm install --global --prefix`: the package below node_modules, its commands linked. */
let installed: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kl-package-'));
  await run('npm', ['pack', '--silent', '--pack-destination', directory], { cwd: ROOT });
  const [packed = ''] = await readdir(directory);
  const home = join(directory, 'lib/node_modules/kilolock-state-archive');
  await mkdir(home, { recursive: true });
  await run('tar', ['-xzf', join(directory, packed), '--strip-components=1', '-C', home]);
  // What npm would fetch.
  await symlink(`${ROOT}node_modules`, join(home, 'node_modules'));
  installed = join(directory, 'bin');
  await mkdir(installed);
  for (const name of ['kl', 'kl-archive'])
    await symlink('../lib/node_modules/kilolock-state-archive/bin/kl', join(installed, name));
  // The machine's own Node.js is of no use.
  await writeFile(
    join(installed, 'node'),
    '#!/bin/sh\necho "the Node.js of the machine was asked" >&2\nexit 9\n',
    { mode: 0o755 },
  );
});
afterAll(() => rm(directory, { recursive: true }));

const call = (program: string, ...args: string[]) =>
  run(program, args, { env: { PATH: `${installed}:/usr/bin:/bin` } });

describe('the file that npm pack makes', () => {
  test('runs kl, installed, on the Node.js that the package brings', async () => {
    expect((await call('kl', 'archive', 'verify', GOLDEN)).stdout).toMatch(/^Complete +yes/m);
    const NODE_OPTIONS = '--import=data:text/javascript,console.error(process.version)';
    const { stdout, stderr } = await run('kl-archive', ['--version'], {
      env: { PATH: `${installed}:/usr/bin:/bin`, NODE_OPTIONS },
    });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(stderr).toBe(`${process.version}\n`);
  });

  test('calls itself by the name it was called by', async () => {
    expect((await call('kl-archive', 'help', 'archive', 'verify')).stdout).toContain(
      '\n  kl-archive archive verify ',
    );
    expect((await call('kl', 'help', 'archive', 'verify')).stdout).toContain('\n  kl archive verify ');
  });

  test('holds what kl needs of the sources, and nothing that a service is made of', async () => {
    const { stdout } = await run('tar', [
      '-tzf',
      join(directory, (await readdir(directory)).find((name) => name.endsWith('.tgz')) ?? ''),
    ]);
    const rooms = new Set([...stdout.matchAll(/^package\/dist\/(\w+)\//gm)].map(([, room]) => room));
    expect([...rooms].sort()).toEqual(['archive', 'base', 'kl', 'terraform']);
    expect(stdout).not.toMatch(/\.ts$/m);
  });
});

test('kl completes commands, options and choices', async () => {
  const complete = async (...words: string[]) =>
    (await call(KL, '__complete', ...words)).stdout.split('\n').slice(0, -1);
  expect(await complete('ar')).toEqual(['archive']);
  expect(await complete('archive', '')).toEqual(['inspect', 'verify', 'extract', 'diff', 'redact', 'build']);
  expect(await complete('archive', 'extract', 'x', '--sal')).toEqual(['--salvage']);
  expect(await complete('status', '--format', '')).toEqual(['table', 'json']);
  // Where a file stands, the shell offers files.
  expect(await complete('archive', 'verify', '')).toEqual([]);
});

describe('in a shell that it completes in', () => {
  const { PATH } = process.env;
  const env = { PATH: `${ROOT}bin:${PATH}`, HOME: '/nonexistent', TERM: 'dumb', PS1: '> ' };
  const has = (shell: string) => (PATH ?? '').split(':').some((each) => existsSync(join(each, shell)));
  const testIn = (shell: string) => (has(shell) ? test : test.skip);

  beforeAll(() => writeFile(join(directory, 'n.klstate'), ''));

  test('bash offers commands', async () => {
    const script =
      'source <(kl completion bash); COMP_WORDS=(kl archive ver); COMP_CWORD=2; _kl_complete; echo "$COMPREPLY"';
    expect((await run('bash', ['-c', script], { env })).stdout).toBe('verify\n');
  });

  testIn('fish')('fish offers commands and choices without files, and files where one stands', async () => {
    const lines = ['kl archive ver', 'kl status --format ', 'kl archive verify n'];
    const script = `kl completion fish | source; ${lines.map((line) => `complete -C "${line}"`).join('; echo; ')}`;
    const { stdout } = await run('fish', ['--no-config', '-c', script], { env, cwd: directory });
    expect(stdout).toBe('verify\n\njson\ntable\n\nn.klstate\n');
  });

  testIn('zsh').each([
    ['sourced', 'compinit -u -D; source <(kl completion zsh)'],
    ['of the function path', 'kl completion zsh > _kl; fpath=($PWD $fpath); compinit -u -D'],
  ])('zsh offers commands, and files where one stands, by a script that is %s', async (_how, load) => {
    const { shown, type, end } = atTerminal('zsh', ['-f', '-i'], { env, cwd: directory });
    type(`autoload -Uz compinit; ${load}; echo rea""dy\r`);
    await shown('ready\r');
    type('kl archive ver\t');
    await shown('kl archive verify ');
    type('n\t');
    await shown('n.klstate');
    end();
  });
});

test.each([
  [['--help'], /^Usage: kl /],
  [['export', 'state', '--help'], /^Usage: kl export state[\s\S]*\nExamples:\n/],
  [['help', 'import', 'archive'], /^Usage: kl import archive[\s\S]*\nExamples:\n/],
  [[], /^Usage: kl /],
])('kl %j prints help, with examples, on standard output', async (args, help) => {
  const { stdout, stderr } = await call(KL, ...args);
  expect([stdout, stderr]).toEqual([expect.stringMatching(help), '']);
});
