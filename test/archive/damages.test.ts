import { readdir, readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { verdict } from './support/handmade.ts';

const directory = new URL('damages/', import.meta.url);

/** What people do to files on their way, done to `whole.klstate` and to the bare tar inside it. */
const damages: [file: string, code: string][] = [
  ['cut-at-the-end.klstate', 'ARCHIVE_TRUNCATED'],
  ['cut-at-the-end.tar.klstate', 'ARCHIVE_TRUNCATED'],
  ['cut-in-the-middle.klstate', 'ARCHIVE_TRUNCATED'],
  ['cut-in-the-middle.tar.klstate', 'ARCHIVE_TRUNCATED'],
  ['one-bit.klstate', 'ARCHIVE_CORRUPT'],
  ['one-bit.tar.klstate', 'ARCHIVE_CORRUPT'],
  ['a-page-of-zeros.klstate', 'ARCHIVE_CORRUPT'],
  ['a-page-of-zeros.tar.klstate', 'ARCHIVE_CORRUPT'],
  ['doubled.klstate', 'ARCHIVE_CORRUPT'],
  ['doubled.tar.klstate', 'ARCHIVE_CORRUPT'],
  // Every LF made CRLF, as a transfer "in text mode" does.
  ['crlf.klstate', 'ARCHIVE_CORRUPT'],
  ['crlf.tar.klstate', 'ARCHIVE_CORRUPT'],
  // Every byte that is no UTF-8 made U+FFFD, as a program does that takes a file for text.
  ['read-as-text.klstate', 'ARCHIVE_CORRUPT'],
];

const read = (file: string) => readFile(new URL(file, directory));

it.each(['whole.klstate', 'whole.tar.klstate'])('%s is whole', async (file) => {
  await expect(verdict(await read(file))).resolves.toMatchObject({ counts: { versions: 4 } });
});

it.each(damages)('%s is %s', async (file, code) => {
  await expect(verdict(await read(file))).rejects.toMatchObject({ name: 'ArchiveError', code });
});

it('no damaged file is kept without its code', async () => {
  const files = (await readdir(directory)).filter((file) => !file.startsWith('whole.'));
  expect(files.sort()).toEqual(damages.map(([file]) => file).sort());
});
