import { expect, test } from '@jest/globals';
import { readInto } from '../../src/base/read-into.ts';

async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

async function readWhole(content: AsyncIterable<Uint8Array>, byteLength: number): Promise<Buffer> {
  const memory = Buffer.alloc(byteLength);
  await readInto(memory, content);
  return memory;
}

test('a stream becomes one piece of memory, with nothing in it that did not come', async () => {
  expect((await readWhole(chunks('ab', '', 'cde'), 5)).toString()).toBe('abcde');
  expect(await readWhole(chunks(), 0)).toHaveLength(0);
  await expect(readWhole(chunks('ab', 'cde'), 6)).rejects.toThrow('5 of 6 bytes');
  await expect(readWhole(chunks('ab', 'cde'), 4)).rejects.toThrow('more than 4 bytes');
});
