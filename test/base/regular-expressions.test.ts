import { globSync, readFileSync } from 'node:fs';
import { parse } from '@babel/parser';
import { expect, test } from '@jest/globals';
import { isSafe } from 'redos-detector';

const ROOT = new URL('../../', import.meta.url);
/**
 * What meets no text of a caller: what only a laptop needs, what reads the project's own files, and what reads
 * the addresses of databases, which whoever runs Kilolock or this service has written.
 */
const BESIDE = ['src/development/', 'src/database/dsn.ts'];

interface Expression {
  readonly file: string;
  readonly pattern: string;
  readonly flags: string;
}

function* expressionsIn(file: string, node: unknown): Generator<Expression> {
  if (typeof node !== 'object' || node === null) return;
  if ('type' in node && node.type === 'RegExpLiteral') {
    yield { ...(node as unknown as Expression), file };
  }
  for (const below of Object.values(node)) yield* expressionsIn(file, below);
}

const files = globSync('src/**/*.ts', { cwd: ROOT }).filter(
  (file) => !BESIDE.some((path) => file.startsWith(path)),
);
const expressions = files.flatMap((file) => {
  const text = readFileSync(new URL(file, ROOT), 'utf8');
  return [...expressionsIn(file, parse(text, { sourceType: 'module', plugins: ['typescript'] }).program)];
});

test('the regular expressions of the service are found', () => {
  expect(expressions.length).toBeGreaterThan(40);
  for (const file of files) {
    expect([file, /\bnew RegExp\(|\bRegExp\(/.test(readFileSync(new URL(file, ROOT), 'utf8'))]).toEqual([
      file,
      false,
    ]);
  }
});

test('every regular expression takes time in proportion to the text, whatever the text', () => {
  const slow = expressions.filter(({ pattern, flags }) => !isSafe(new RegExp(pattern, flags)).safe);
  expect(slow.map(({ file, pattern }) => `${file}: ${pattern}`)).toEqual([]);
  // Proofs take seconds, and many more on a machine that has other things to do.
}, 300_000);

test.each(['^(bearer|basic) +(.*?) *$', '[.-]+$', '([a-z]+:)[^@]*@'])(
  'one that takes more is noticed: %s',
  (pattern) => expect(isSafe(new RegExp(pattern)).safe).toBe(false),
);
