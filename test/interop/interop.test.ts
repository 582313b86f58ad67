import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { parse, validate } from 'graphql';
import { createSchema } from '../../src/graphql/schema.ts';
import * as documents from './documents.ts';

/** @file What keeps `npm run interop` usable while nobody runs it. */

const schema = createSchema({ gatewayProofRequired: false });

test.each(Object.entries(documents))('the document %s is one that the schema knows', (_name, text) => {
  expect(validate(schema, parse(text)).map(({ message }) => message)).toEqual([]);
});

test('without kld it says what is missing, and ends with 2', async () => {
  const { code, stderr } = await interop({ KLD: '/nowhere/kld' });
  expect(code).toBe(2);
  expect(stderr).toContain('--kld');
});

test('a flag or a part that nobody knows is told, and ends with 2', async () => {
  expect(await interop({}, '--kdl')).toMatchObject({ code: 2, stderr: expect.stringContaining('--kdl') });
  expect(await interop({}, '--only', 'no')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"no"'),
  });
});

function interop(environment: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const file = fileURLToPath(new URL('main.ts', import.meta.url));
  return new Promise<{ code: unknown; stderr: string }>((resolve) => {
    execFile(
      process.execPath,
      [file, ...args],
      { env: { PATH: process.env.PATH, ...environment } },
      (error, _stdout, stderr) => resolve({ code: error?.code ?? 0, stderr }),
    );
  });
}
