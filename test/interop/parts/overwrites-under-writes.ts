import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { generatedDocument } from '../histories/generated.ts';
import type { Kld } from '../kilolock.ts';
import type { Part } from '../part.ts';

const NAME = 'race';
const LINEAGE = 'c0ffee00-0000-4000-8000-0000000000aa';
const VERSIONS = 30;
const OVERWRITES = 20;

export const overwritesUnderWrites: Part = {
  name: 'overwrites-under-writes',
  title: 'Overwrites while kld goes on writing',
  needs: [],
  after: [],
  async run({ report, backends }) {
    const [a, b] = await backends();
    for (let number = 1; number <= VERSIONS; number += 1) await post(a.kld, number);
    const { bytes } = await a.archives.export(NAME);
    deepStrictEqual((await b.archives.import(bytes)).messages, []);

    const outcomes: Record<string, number> = {};
    const pace = { overwriteMs: 500 };
    const writer = startWriter(b.kld, pace);
    try {
      for (let count = 0; count < OVERWRITES; count += 1) {
        const started = performance.now();
        const { currentSerial } = await b.archives.manifest(NAME);
        const { operation, codes } = await b.archives.import(bytes, {
          onConflict: 'OVERWRITE',
          confirmName: NAME,
          expectedCurrentSerial: currentSerial ?? '',
        });
        const outcome = codes.join() || String(operation?.report?.outcome);
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
        pace.overwriteMs = performance.now() - started;
      }
    } finally {
      await writer.stop();
    }
    const { refused, written } = writer;
    await report.check('an overwrite replaces, or tells that it came too late; nothing else', () => {
      const { REPLACED = 0, STALE_DESTINATION = 0, ...others } = outcomes;
      deepStrictEqual(others, {});
      ok(REPLACED > 0);
      return `REPLACED ${REPLACED}, STALE_DESTINATION ${STALE_DESTINATION}`;
    });
    await report.check('no write to kld is refused meanwhile', () => {
      deepStrictEqual(refused, []);
      ok(written() > 0);
      return `${written()} written`;
    });
    await report.check(
      'the history in the end is whole: it is exported and restored without a warning',
      async () => {
        const exported = await b.archives.export(NAME);
        const { operation, messages } = await a.archives.import(exported.bytes, {
          name: `${NAME}-check`,
          allowSharedLineage: true,
        });
        deepStrictEqual(messages, []);
        deepStrictEqual(operation?.report?.warnings, []);
        strictEqual(operation?.report?.resourceSpansDerived, false);
      },
    );
  },
};

async function post(kld: Kld, number: number): Promise<number> {
  return (await kld.post(NAME, generatedDocument(number, LINEAGE, 7))).status;
}

/** Posts a version every one or two overwrites, at uneven times, so that some overwrites win and some do not. */
function startWriter(kld: Kld, pace: { readonly overwriteMs: number }) {
  let stopped = false;
  let written = 0;
  const refused: number[] = [];
  const writing = (async () => {
    for (let number = 101; !stopped; number += 1) {
      const status = await post(kld, number);
      if (status === 200) written += 1;
      else refused.push(status);
      await pause(pace.overwriteMs * (0.5 + (number % 7) / 3));
    }
  })();
  return {
    refused,
    written: () => written,
    async stop() {
      stopped = true;
      await writing;
    },
  };
}
