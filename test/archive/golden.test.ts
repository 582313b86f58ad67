import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';

/** Archives of every released version stay readable for ever: a file here is never changed, only joined by others. */
const golden = [{ file: 'v1.klstate', recorded: 'v1.json' }];

it.each(golden)('$file reads as it did when it was written', async ({ file, recorded }) => {
  const at = (name: string) => new URL(`golden/${name}`, import.meta.url).pathname;
  const texts: string[] = [];
  const verified = await verifyArchive(at(file), {
    onVersion: async (_, content) => {
      const chunks: Uint8Array[] = [];
      for await (const chunk of content) chunks.push(chunk);
      texts.push(Buffer.concat(chunks).toString());
    },
  });
  const expected = JSON.parse(await readFile(at(recorded), 'utf8'));
  expect({
    sha256: verified.sha256,
    historyDigest: verified.historyDigest,
    counts: verified.counts,
    currentSerial: String(verified.manifest.state.currentSerial),
    tags: verified.tags.map(({ tag, serial }) => `${tag} -> ${serial}`),
    rawStates: texts,
  }).toEqual(expected);
});
