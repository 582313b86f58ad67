import { expect, test } from '@jest/globals';
import { blameOperator, OperatorError } from '../../src/base/operator-error.ts';

async function told(error: unknown): Promise<unknown> {
  return Promise.reject(error)
    .catch(blameOperator('X cannot be used'))
    .catch((thrown: unknown) => thrown);
}

test.each([
  [
    'an error of the system',
    Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' }),
    'EACCES: permission denied',
  ],
  [
    'one that does not name its code',
    Object.assign(new Error('no rights'), { code: '42501' }),
    'no rights (42501)',
  ],
  [
    'one for each address of a host',
    new AggregateError([new Error('refused'), new Error('refused')]),
    'refused',
  ],
  ['one of several lines', new Error('Command failed\n  at once\n'), 'Command failed at once'],
  ['one with a password', new Error('cannot use postgres://u:hunter2@h/d'), 'cannot use postgres://***@h/d'],
  [
    'a port out of range',
    Object.assign(new RangeError('bad port'), { code: 'ERR_SOCKET_BAD_PORT' }),
    'bad port (ERR_SOCKET_BAD_PORT)',
  ],
])('what only the operator can mend becomes one line: %s', async (_name, error, line) => {
  const thrown = await told(error);
  expect(thrown).toBeInstanceOf(OperatorError);
  expect(thrown).toMatchObject({ message: `X cannot be used: ${line}`, cause: error });
});

test.each([new TypeError('x is not a function'), new OperatorError('one line already')])(
  'a bug, and what is one line already, stay what they are: %p',
  async (error) => {
    expect(await told(error)).toBe(error);
  },
);
