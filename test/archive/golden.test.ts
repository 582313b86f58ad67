import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { collect } from './support/build-archive.ts';
import { readMembers } from './support/read-members.ts';

/** Archives of every released version stay readable for ever: a file here is never changed, only joined by others. */
const golden = [
  { file: 'v1.klstate', recorded: 'v1.json' },
  { file: 'v1-told-window.klstate', recorded: 'v1-told-window.json' },
];

it.each(golden)('$file reads as it did when it was written', async ({ file, recorded }) => {
  const at = (name: string) => new URL(`golden/${name}`, import.meta.url).pathname;
  const texts: string[] = [];
  const verified = await readMembers(at(file), async (member) => {
    if (member.kind !== 'version') return;
    texts.push(Buffer.concat(await collect(member.content)).toString());
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
