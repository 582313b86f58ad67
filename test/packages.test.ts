import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

interface Locked {
  readonly version: string;
  readonly dev?: true;
  readonly integrity?: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly hasInstallScript?: true;
  readonly engines?: { readonly node?: string };
}

/** What there is no release of for the Node.js that may install it: all of it runs on the one that the project brings. */
const NEED_OUR_NODE = ['@apollo/subgraph', 'commander', 'kysely', 'pg-boss'];

const { satisfies }: { satisfies(version: string, range: string): boolean } = createRequire(import.meta.url)(
  'semver',
);
const read = (name: string) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const manifest = read('package.json');
const locked: Readonly<Record<string, Locked>> = read('package-lock.json').packages;

test('every package is asked for in one exact version', () => {
  const { dependencies, devDependencies, optionalDependencies } = manifest;
  for (const version of Object.values({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
    expect(version).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
  }
});

test('the Node.js that runs everything comes out of the lockfile, with a digest, and is fetched by no script', () => {
  const runtimes = Object.entries(locked).filter(([, { bin }]) => bin?.node !== undefined);
  expect(runtimes.map(([path]) => path.replace('node_modules/', '')).sort()).toEqual(
    Object.keys(manifest.optionalDependencies).sort(),
  );
  for (const [, { version, integrity, hasInstallScript }] of runtimes) {
    expect(version).toMatch(/^24\./);
    expect(integrity).toMatch(/^sha512-/);
    expect(hasInstallScript).toBeUndefined();
  }
});

test.each(['20.20.0', '24.21.0'])(
  'npm warns of four packages at most when Node.js %s installs',
  (version) => {
    const refused = Object.entries(locked).filter(
      ([, { engines }]) => !satisfies(version, engines?.node ?? '*'),
    );
    const names = refused.map(([path]) => path.replace('node_modules/', ''));
    expect(names.sort()).toEqual(version.startsWith('24') ? [] : NEED_OUR_NODE);
  },
);

test.each([
  ['production', 320, ({ dev }: Locked) => dev === undefined],
  ['everything', 600, () => true],
])('%s takes at most %d MB once it is installed', (_what, megabytes, isMeant) => {
  const root = new URL('../', import.meta.url);
  const paths = Object.entries(locked)
    .filter(([path, entry]) => path !== '' && isMeant(entry) && existsSync(new URL(path, root)))
    .map(([path]) => path);
  const [total = ''] = execFileSync('du', ['-skc', ...paths], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
    .slice(-1);
  expect(Number.parseInt(total, 10) / 1024).toBeLessThanOrEqual(megabytes);
});

test('the tests run on that Node.js', () => {
  expect(process.execPath).toContain(fileURLToPath(new URL('../node_modules/node-', import.meta.url)));
});
