import { afterAll, beforeAll, describe, test } from '@jest/globals';
import fc from 'fast-check';
import { readCorpus } from './corpus.ts';
import { type FuzzSubject, withinCpuTime } from './target.ts';
import { FUZZ_TARGETS } from './targets.ts';

/** The runs bound the test; this only ends one that hangs, on a machine however busy. */
const RUNS_TIMEOUT_MS = 600_000;

describe.each(FUZZ_TARGETS.map((target) => ({ name: target.name, target })))(
  'what strangers send: $name',
  ({ target }) => {
    let subject: FuzzSubject<unknown>;

    beforeAll(async () => {
      subject = await target.open();
    });
    afterAll(() => subject.close());

    const corpus = readCorpus(target);
    // test.each refuses an empty list.
    if (corpus.length > 0) {
      test.each(corpus)('$name, which once failed', ({ input }) => subject.check(input));
    }

    test(
      'is answered as it should be, whatever it is',
      async () => {
        const property = fc.asyncProperty(target.inputs, (input) =>
          withinCpuTime(() => subject.check(input)),
        );
        // The same inputs each time: it is `npm run fuzz` that looks for others, and makes small what it finds.
        await fc.assert(property, { numRuns: target.runsInSuite, seed: 1, endOnFailure: true });
      },
      RUNS_TIMEOUT_MS,
    );
  },
);
