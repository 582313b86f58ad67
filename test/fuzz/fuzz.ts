import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { startTestServer } from '../support/test-server.ts';
import { keepInCorpus } from './corpus.ts';
import { type FuzzTarget, withinCpuTime } from './target.ts';
import { FUZZ_TARGETS } from './targets.ts';

// `npm run fuzz -- [--target NAME] [--minutes N] [--seed S]`: puts random inputs to one target after another, or to one
// alone, for so long each. What fails is made small, kept in test/fuzz/corpus, and the process ends with 1.

const USAGE = `usage: npm run fuzz -- [--target ${FUZZ_TARGETS.map(({ name }) => name).join('|')}] [--minutes N] [--seed S]`;
/** Inputs of one seed; the next seed is the next number. */
const RUNS_A_SEED = 500;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      target: { type: 'string' },
      minutes: { type: 'string', default: '1' },
      seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    },
  });
  const minutes = Number(values.minutes);
  const seed = Number(values.seed);
  const chosen = FUZZ_TARGETS.filter(({ name }) => values.target === undefined || name === values.target);
  if (chosen.length === 0 || !(minutes > 0) || !Number.isSafeInteger(seed)) {
    console.error(USAGE);
    return 2;
  }
  const server = await startTestServer();
  process.env.STATE_ARCHIVE_TEST_SERVER = JSON.stringify(server.address);
  try {
    let failures = 0;
    for (const target of chosen) failures += await fuzz(target, minutes * 60_000, seed);
    return failures === 0 ? 0 : 1;
  } finally {
    await server.stop();
  }
}

/** @returns how many different failures were found. */
async function fuzz<Input>(
  target: FuzzTarget<Input>,
  milliseconds: number,
  firstSeed: number,
): Promise<number> {
  const end = Date.now() + milliseconds;
  const found = new Set<string>();
  const subject = await target.open();
  let runs = 0;
  let seed = firstSeed;
  console.log(`${target.name}: from seed ${firstSeed}, for ${milliseconds / 60_000} minutes`);
  const check = async (input: Input) => {
    try {
      await withinCpuTime(() => subject.check(input));
    } catch (error) {
      // What is known already must not hide what comes after it.
      if (!found.has(kindOf(error))) throw error;
    }
  };
  try {
    for (; Date.now() < end; seed += 1) {
      const details = await fc.check(fc.asyncProperty(target.inputs, check), {
        seed,
        numRuns: RUNS_A_SEED,
        interruptAfterTimeLimit: end - Date.now(),
      });
      runs += details.numRuns;
      if (!details.failed || details.counterexample === null) continue;
      const [input] = details.counterexample;
      found.add(kindOf(details.errorInstance));
      console.log(
        `${target.name}: seed ${seed}, kept as ${keepInCorpus(target, input)}: ${details.errorInstance}`,
      );
    }
  } finally {
    await subject.close();
  }
  console.log(
    `${target.name}: ${runs} inputs of the seeds ${firstSeed} to ${seed - 1}, ${found.size} failures`,
  );
  return found.size;
}

/** A failure without what is different each time. */
function kindOf(error: unknown): string {
  return String(error).replace(/[0-9a-f]{8}-[0-9a-f-]{27}|\d+/g, '…');
}

process.exitCode = await main();
