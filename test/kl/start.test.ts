import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { KL } from './support/kl.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const GOLDEN = `${ROOT}test/archive/golden/v1.klstate`;

/** Prints the address of every module that is loaded, once the program ends. */
const PRINT_LOADED = `data:text/javascript,import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
process.on('exit', () => console.error(JSON.stringify(loaded)));`.replaceAll('\n', ' ');

/** What a call of kl loads: the packages, and the directories of the sources with how many modules each. */
async function loadedBy(...args: string[]) {
  const { stderr } = await promisify(execFile)(KL, args, {
    env: {
      PATH: process.env.PATH,
      KL_ENDPOINT: 'http://127.0.0.1:1/graphql',
      KL_TOKEN: 'x',
      NODE_OPTIONS: `--import="${PRINT_LOADED}"`,
    },
  }).catch((error: { stderr: string }) => error);
  const urls = JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as string[];
  const packages = urls.flatMap((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? []);
  const rooms = urls.flatMap((url) => /\/src\/(\w+)\//.exec(url)?.[1] ?? []);
  return {
    packages: [...new Set(packages)].sort(),
    rooms: [...new Set(rooms)].sort(),
    sources: rooms.length,
  };
}

// What is loaded is what a start costs, on whichever machine.
const TABLES = [
  'ansi-regex',
  'cli-table3',
  'emoji-regex',
  'is-fullwidth-code-point',
  'string-width',
  'strip-ansi',
];

test.each([
  [['--help'], { packages: ['commander'], rooms: ['kl'] }, 5],
  [['__complete', 'ar'], { packages: ['commander'], rooms: ['kl'] }, 5],
  [['status'], { packages: [...TABLES, 'commander'].sort(), rooms: ['base', 'kl'] }, 20],
  [
    ['archive', 'inspect', GOLDEN],
    { packages: [...TABLES, 'commander', 'zod'].sort(), rooms: ['archive', 'base', 'kl'] },
    50,
  ],
])('kl %j loads what it needs alone', async (args, needed, most) => {
  const { sources, ...loaded } = await loadedBy(...args);
  expect(loaded).toEqual(needed);
  expect(sources).toBeLessThanOrEqual(most);
});
