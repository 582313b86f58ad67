import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Exported } from '../archive-service.ts';
import { unpack } from '../archive-tools.ts';
import { generatedDocument } from '../histories/generated.ts';
import type { Kld } from '../kilolock.ts';
import type { Part } from '../part.ts';
import type { Stage } from '../stage.ts';

const NAME = 'busy';
const EXPORTS = 6;
const FIRST_VERSIONS = 50;

/** An export, and how many versions had been written for certain when it began and when it had ended. */
interface Cut {
  readonly exported: Exported;
  readonly before: number;
  readonly after: number;
}

export const writesDuringExports: Part = {
  name: 'writes-during-exports',
  title: 'Exports while kld goes on writing',
  needs: ['zstd', 'tar', 'sha256sum'],
  after: [],
  async run(stage) {
    const [a, b] = await stage.backends();
    const writer = startWriter(a.kld);
    const cuts: Cut[] = [];
    try {
      while (writer.written() < FIRST_VERSIONS) await writer.next();
      for (let count = 0; count < EXPORTS; count += 1) {
        const before = writer.written();
        cuts.push({ exported: await a.archives.export(NAME), before, after: writer.written() });
        await writer.next();
      }
    } finally {
      await writer.stop();
    }
    for (const [index, cut] of cuts.entries()) {
      await stage.report.check(`export ${index + 1} under writes is one consistent cut`, () =>
        checkCut(stage, `cut-${index}`, cut),
      );
      await stage.report.check(`export ${index + 1} under writes is restored without a warning`, async () => {
        const { messages, operation } = await b.archives.import(cut.exported.bytes, {
          name: `${NAME}-${index}`,
          allowSharedLineage: true,
        });
        deepStrictEqual(messages, []);
        deepStrictEqual(operation?.report?.warnings, []);
        strictEqual(operation?.report?.resourceSpansDerived, false);
      });
    }
  },
};

/** Posts version after version, and moves tags, until it is stopped. */
function startWriter(kld: Kld) {
  let written = 0;
  let stopped = false;
  let wrote = Promise.withResolvers<void>();
  const writing = (async () => {
    while (!stopped) {
      const number = written + 1;
      const { status } = await kld.post(
        NAME,
        generatedDocument(number, 'c0ffee00-0000-4000-8000-00000000000b', 20),
      );
      strictEqual(status, 200);
      written = number;
      if (number % 5 === 0) {
        const tag = { tag: `t${number % 20}`, version_ref: 'current', actor: 'loop' };
        await kld.administer(NAME, 'POST', 'state/tags/set', tag);
      }
      wrote.resolve();
      wrote = Promise.withResolvers();
    }
  })();
  // Whoever waits for the next version hears of the failure; so does stop().
  writing.catch((error: unknown) => wrote.reject(error));
  return {
    written: () => written,
    next: () => wrote.promise,
    async stop() {
      stopped = true;
      await writing;
    },
  };
}

/** Versions without a gap up to one that was there meanwhile, and tags, events and spans of just these. */
async function checkCut(stage: Stage, name: string, { exported, before, after }: Cut): Promise<string> {
  const { directory } = await unpack(stage, name, exported.bytes);
  const read = (member: string) => readFile(join(directory, member), 'utf8');
  const lines = async (member: string) =>
    (await read(member))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, string | null>);
  const serials = (await readdir(join(directory, 'versions')))
    .map((file) => Number(file.replace('.tfstate.json', '')))
    .sort((x, y) => x - y);
  const last = serials.length;
  deepStrictEqual(
    serials,
    Array.from({ length: last }, (_, index) => index + 1),
    'no gap',
  );
  // A version may have been written whose answer had not arrived.
  ok(before <= last && last <= after + 1, `the last version ${last} is between ${before} and ${after + 1}`);
  const { state } = JSON.parse(await read('manifest.json')) as { state: { current_serial: string } };
  strictEqual(state.current_serial, String(last));
  const writes = (await lines('events.ndjson')).filter(({ kind }) => kind === 'state_write');
  strictEqual(writes.length, last, 'one event for each version');
  const beyond = (await lines('resources.ndjson')).filter(
    (span) => Number(span.create_serial) > last || Number(span.delete_serial ?? 0) > last,
  );
  deepStrictEqual(beyond, [], 'no span beyond the last version');
  return `cut at ${last}, written ${before} to ${after}`;
}
