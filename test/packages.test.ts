import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

interface Locked {
  readonly version: string;
  readonly integrity?: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly hasInstallScript?: true;
}

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

test('the tests run on that Node.js', () => {
  expect(process.execPath).toContain(fileURLToPath(new URL('../node_modules/node-', import.meta.url)));
});
