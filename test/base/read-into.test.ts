import { expect, test } from '@jest/globals';
import { readWhole } from '../../src/base/read-whole.ts';

async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

test('a stream becomes one piece of memory, with nothing in it that did not come', async () => {
  expect((await readWhole(chunks('ab', '', 'cde'), 5)).toString()).toBe('abcde');
  expect(await readWhole(chunks(), 0)).toHaveLength(0);
  await expect(readWhole(chunks('ab', 'cde'), 6)).rejects.toThrow('5 of 6 bytes');
  await expect(readWhole(chunks('ab', 'cde'), 4)).rejects.toThrow('more than 4 bytes');
});
