import { expect, test } from '@jest/globals';
import { WarningCollector } from '../../src/inspection/warnings.ts';

test('a report has a bound, however many warnings there are and whatever they name', () => {
  const warnings = new WarningCollector();
  const address = `thing.${'x'.repeat(2 * 1024 * 1024)}`;
  for (let serial = 1n; serial <= 1000n; serial++) {
    warnings.add('DEPOSED_INSTANCE', `Serial ${serial}: ${address} has a deposed object.`, serial);
    warnings.add('SERIAL_MISMATCH', `Serial ${serial}: the document says another.`, serial);
  }
  const list = warnings.list();
  expect(list.reduce((sum, { message }) => sum + message.length, 0)).toBeLessThan(100_000);
  expect(list.slice(-2).map(({ message }) => message)).toEqual([
    '950 more of DEPOSED_INSTANCE.',
    '950 more of SERIAL_MISMATCH.',
  ]);
  expect(list[0]?.message).toMatch(/^Serial 1: thing\.x+…$/);
});
