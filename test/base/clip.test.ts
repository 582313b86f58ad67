import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { clip } from '../../src/base/clip.ts';

test('a text within the bound stays as it is', () => {
  expect(clip('', 10)).toBe('');
  expect(clip('x'.repeat(10), 10)).toBe('x'.repeat(10));
});

test('a longer one is cut to the bound, marked, and never inside a character', () => {
  expect(clip('x'.repeat(11), 10)).toBe(`${'x'.repeat(9)}…`);
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 2, max: 20 }), (text, most) => {
      const cut = clip(text, most);
      expect(cut.length).toBeLessThanOrEqual(most);
      expect(cut.isWellFormed()).toBe(true);
      expect(cut === text || (cut.endsWith('…') && text.startsWith(cut.slice(0, -1)))).toBe(true);
    }),
  );
});
