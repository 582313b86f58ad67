import { expect, test } from '@jest/globals';
import { scalars } from '../../src/graphql/scalars.ts';

test.each(['infinity', '-infinity', '0044-03-15 12:00:00+00 BC', '10000-01-01 00:00:00+00'])(
  'a time that DateTime cannot say, %s, is an error of its own and never another time',
  (time) => {
    expect(() => scalars.DateTime.serialize(time)).toThrow(
      expect.objectContaining({ code: 'HISTORY_INCONSISTENT' }),
    );
  },
);

test('a time that it can say stays as it is', () => {
  expect(scalars.DateTime.serialize('9999-12-31T23:59:59.999999Z')).toBe('9999-12-31T23:59:59.999999Z');
});
