import { expect, test } from '@jest/globals';
import { GraphQLError } from 'graphql';
import { describeError } from '../../src/base/error-log.ts';

test('what may be logged of an error is its type, message, code, frames and causes', () => {
  const cause = Object.assign(new TypeError('cause'), { code: 'ECONNRESET' });
  const described = describeError(new Error('outer', { cause }));
  expect(described).toMatchObject({
    type: 'Error',
    message: 'outer',
    cause: { type: 'TypeError', message: 'cause', code: 'ECONNRESET' },
  });
  expect(described.stack).toMatch(/^\s+at /);
});

test('rows, queries, passwords and link tokens stay out', () => {
  const driverError = Object.assign(
    new Error('cannot use postgresql://app:SECRET@db/kilolock nor https://x/archives/1?token=SECRET&a=1'),
    { detail: 'Failing row contains (SECRET)', where: 'SECRET', query: 'SECRET' },
  );
  const located = new GraphQLError('SECRET', { originalError: driverError });
  const text = JSON.stringify(describeError(located));
  expect(text).not.toContain('SECRET');
  expect(text).toContain('postgresql://***@db/kilolock');
  expect(text).toContain('?token=***&a=1');
});

test('the signature of an address in object storage stays out', () => {
  const address =
    'https://s3.example/b/k?X-Amz-Expires=60&X-Amz-Security-Token=SECRET&X-Amz-Signature=SECRET';
  const { message } = describeError(new Error(`cannot reach ${address} at all`));
  expect(message).toContain('X-Amz-Expires=60');
  expect(message).toMatch(/at all$/);
  expect(message).not.toContain('SECRET');
});

test.each([
  ['postgresql://app:SEC@RET@db/kilolock', 'postgresql://***@db/kilolock'],
  [
    'postgresql://db/kilolock?password=SECRET&sslmode=prefer',
    'postgresql://db/kilolock?password=***&sslmode=prefer',
  ],
  ["host=db password='SEC RET' dbname=kilolock", "host=db password=***' dbname=kilolock"],
  ['host=db password=SECRET dbname=kilolock', 'host=db password=*** dbname=kilolock'],
  ['https://id.example.org/a@b', 'https://id.example.org/a@b'],
])('a password stays out, however an address holds it: %s', (address, logged) => {
  expect(describeError(new Error(`cannot use ${address}`)).message).toBe(`cannot use ${logged}`);
});

test.each([
  [
    'PostgreSQL quotes a value',
    Object.assign(new Error('invalid input syntax for type bigint: "SEC"RET"'), { code: '22P02' }),
    'invalid input syntax for type bigint: "…"',
  ],
  ['JSON.parse quotes a text', jsonProblem('{"password": SECRET}'), undefined],
  [
    'a file system names a file',
    Object.assign(new Error("ENOENT: no such file or directory, rename '/SECRET/a' -> '/SECRET/b'"), {
      code: 'ENOENT',
      syscall: 'rename',
      path: '/SECRET/a',
    }),
    "ENOENT: no such file or directory, rename '…'",
  ],
])('where %s, the message stays without it', (_name, error, message) => {
  const described = describeError(error);
  expect(JSON.stringify(described)).not.toContain('SEC');
  if (message !== undefined) expect(described.message).toBe(message);
});

function jsonProblem(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error;
  }
}

test('a value thrown that is no error is not logged', () => {
  expect(JSON.stringify(describeError('SECRET'))).not.toContain('SECRET');
});

test('causes that go round end', () => {
  const error = new Error('round');
  error.cause = error;
  expect(JSON.stringify(describeError(error)).match(/"round"/g)).toHaveLength(5);
});
