import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { goQuote } from '../../src/terraform/go-quote.ts';

/** SHA-256 over one byte for each code point, 1 where `strconv.IsPrint` of Go (Unicode 15.0) is true from U+0080 on. */
const PRINTABLE_IN_GO = '3a67527912394ae89eb56384fe3c81079627afc6980184ba0b2b9c6c4cdc8d8d';

test('strings are quoted as Go quoted them', async () => {
  const table: unknown = JSON.parse(
    await readFile(new URL('fixtures/go-quote.json', import.meta.url), 'utf8'),
  );
  if (!Array.isArray(table)) throw new Error('The table is no list.');
  expect(table.length).toBeGreaterThan(30);
  expect(table.map(({ text }) => ({ text, quoted: goQuote(text) }))).toEqual(table);
});

test('every character of Unicode stands for itself exactly where Go prints it', () => {
  const printable = new Uint8Array(0x110000);
  for (let code = 0x80; code < printable.length; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const character = String.fromCodePoint(code);
    if (goQuote(character) === `"${character}"`) printable[code] = 1;
  }
  expect(createHash('sha256').update(printable).digest('hex')).toBe(PRINTABLE_IN_GO);
});
