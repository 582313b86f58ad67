import { expect, test } from '@jest/globals';
import { goJson } from '../../src/terraform/go-json.ts';

test('a text of any length is spelled as Go spells it', () => {
  expect(goJson(['<a>', '&', '\u2028\u2029', '"\\\n'])).toBe(
    '["\\u003ca\\u003e","\\u0026","\\u2028\\u2029","\\"\\\\\\n"]',
  );
  const long = `${'x<'.repeat(100_000)}é\u2029`;
  expect(goJson(long)).toBe(`"${'x\\u003c'.repeat(100_000)}é\\u2029"`);
});
