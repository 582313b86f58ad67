import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Part } from '../part.ts';
import type { Finished } from '../processes.ts';
import { rowsOf, sameRows, withoutTimesAfter } from '../rows.ts';
import type { Backend, Stage } from '../stage.ts';
import type { WorkingDirectory } from '../working-directory.ts';
import { APP, NETWORK } from './histories.ts';
import { roundTrip } from './round-trip.ts';

export const goingOn: Part = {
  name: 'going-on',
  title: 'Going on: the same work on A and on B, from the same working directory',
  needs: ['terraform', 'kl'],
  after: [roundTrip],
  async run(stage) {
    for (const state of [NETWORK, APP]) await checkReads(stage, stage.work(state));
    for (const state of [NETWORK, APP]) await checkMove(stage, stage.work(state));
    await goOnWithNetwork(stage, stage.work(NETWORK));
    await goOnWithApp(stage, stage.work(APP));
    for (const state of [NETWORK, APP]) await checkWayHome(stage, stage.work(state));
  },
};

/** What `kl` tells of a state; `STATE` stands for its name. */
const READS = [
  ['history', '--format', 'json', '--limit', '0', 'STATE'],
  ['history', '--limit', '0', 'STATE'],
  ['tag', 'list', '--format', 'json', 'STATE'],
  ['tag', 'list', 'STATE'],
  ['status', '--format', 'json', 'STATE'],
  ['diff', '--format', 'json', 'STATE'],
  ['diff', '--format', 'unified', '--from', '1', '--to', 'current', 'STATE'],
  ['query', 'resources', '--address-glob', '*', 'STATE'],
  ['list'],
  [
    'query',
    '--format',
    'json',
    `select address, create_serial, delete_serial, attributes_hash, attributes from resources
     join states on states.id = state_id where states.name = 'STATE' order by address, create_serial`,
  ],
  ['quota', 'remaining', '--state', 'STATE'],
];

const NETWORK_READS = [
  ['diff', '--from', 'first', '--to', 'deposed', '--format', 'json', 'STATE'],
  ['diff', '--from', '@7', '--to', 'release-1', '--format', 'table', 'STATE'],
  ['query', 'history', '--address', 'terraform_data.plain', 'STATE'],
  ['query', 'resource', '--address', 'terraform_data.each["plain"]', 'STATE'],
  ['query', 'history', '--address', 'terraform_data.each["with \\"quotes\\""]', 'STATE'],
  ['rollback', '--to', 'first', 'STATE'],
  ['rollback', 'resource', '--address', 'terraform_data.plain', '--to', 'release-1', 'STATE'],
];

async function checkReads(stage: Stage, work: WorkingDirectory): Promise<void> {
  const { state } = work;
  const [a, b] = await stage.backends();
  for (const args of state === NETWORK ? [...READS, ...NETWORK_READS] : READS) {
    const call = args.map((word) => word.replace('STATE', state));
    const shown = call.join(' ').replace(/\s+/g, ' ').slice(0, 80);
    await stage.report.check(`kl ${shown}: says the same on A and on B`, async () => {
      const [here, there] = await onEach([a, b], work, () => work.tryKl(call));
      deepStrictEqual(comparable(there, state), comparable(here, state));
      return `exit code ${here.exitCode}`;
    });
  }
}

/** What is told, without ids, ages and addresses, which are each backend's own, and without B's other states. */
function comparable({ exitCode, stdout, stderr }: Finished, state: string): unknown {
  const text = `${stdout}${stderr}`
    .split('\n')
    .filter((line) => !/another\/name|--archived-/.test(line))
    .join('\n')
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'ID')
    .replace(/\b[0-9a-f]{8}\b/g, 'ID')
    .replace(/("UpdatedAt": )"[^"]*"/g, '$1TIME')
    .replace(/\d+[smh] ago/g, 'AGO')
    .replace(/127\.0\.0\.1:\d+/g, 'HOST')
    // Columns are as wide as what stands in them.
    .replace(/ {2,}/g, '  ');
  return { state, exitCode, text };
}

/** Does something with a working directory pointed at each backend in turn. */
async function onEach<Result>(
  [a, b]: readonly [Backend, Backend],
  work: WorkingDirectory,
  act: (backend: Backend) => Promise<Result>,
): Promise<readonly [here: Result, there: Result]> {
  await work.pointAt(a.kld);
  const here = await act(a);
  await work.pointAt(b.kld);
  return [here, await act(b)];
}

async function checkMove({ report, backends }: Stage, work: WorkingDirectory): Promise<void> {
  const { state } = work;
  const both = await backends();
  await report.check(`${state}: terraform state pull gives the same bytes`, async () => {
    const [here, there] = await onEach(both, work, async ({ kld }) => {
      await work.init();
      return [(await work.terraform(['state', 'pull'])).stdout, await kld.document(state)];
    });
    deepStrictEqual(there, here);
    return `${here[0]?.length} characters`;
  });
  await report.check(`${state}: terraform plan at B finds nothing to do`, () => nothingToDo(work));
}

async function nothingToDo(work: WorkingDirectory): Promise<void> {
  const { exitCode, stdout, stderr } = await work.plan();
  strictEqual(exitCode, 0, stdout + stderr);
}

/** Does the same on A and on B, and compares how it ends and what becomes of every row. */
async function checkStep(
  { report, backends }: Stage,
  work: WorkingDirectory,
  restoredAt: number,
  [what, act]: readonly [string, () => Promise<Finished>],
): Promise<void> {
  const { state } = work;
  const both = await backends();
  const outcomes = await onEach(both, work, async ({ database }) => {
    await work.init();
    const { exitCode, stdout, stderr } = await act();
    return { exitCode, serial: await database.lastSerial(state), said: stdout + stderr };
  });
  const [here, there] = outcomes;
  await report.check(`${state}: ${what}: ends alike`, () => {
    ok(here.exitCode === 0 || here.exitCode === 2, here.said);
    deepStrictEqual([there.exitCode, there.serial], [here.exitCode, here.serial], there.said);
    return `exit code ${here.exitCode}, serial ${here.serial}`;
  });
  await report.check(`${state}: ${what}: leaves the same rows`, async () => {
    const [ours, theirs] = [await rowsOf(both[0].database, state), await rowsOf(both[1].database, state)];
    sameRows(withoutTimesAfter(ours, restoredAt), withoutTimesAfter(theirs, restoredAt));
  });
}

async function goOnWithNetwork(stage: Stage, work: WorkingDirectory): Promise<void> {
  const { state } = work;
  const [, b] = await stage.backends();
  const restoredAt = await b.database.lastSerial(state);
  const step = (what: string, act: () => Promise<Finished>) =>
    checkStep(stage, work, restoredAt, [what, act]);
  const kl = (...args: string[]) => work.tryKl([...args, '--apply', '--yes', state]);
  const stateEngine = (...args: string[]) =>
    work.tryKl(['state', ...args, '--apply', '--yes', state], { protocol: 'state-engine' });

  await work.replace('main.tf', `"hello ${'$'}{var.tag}"`, '"hello four"');
  await step('apply of a change', () => work.try(['apply', '-input=false', '-auto-approve']));
  await stage.report.check(
    `${state}: the apply takes the next serial and touches what changed alone`,
    async () => {
      const opened = await b.database.rows<{ address: string; serial: string }>(
        'select address, create_serial as serial from resources where state_id = $1 and create_serial > $2',
        [await b.database.stateId(state), restoredAt],
      );
      deepStrictEqual(opened, [{ address: 'terraform_data.plain', serial: String(restoredAt + 1) }]);
    },
  );
  await step('rollback to a restored tag', () => kl('rollback', '--to', 'release-1', '--actor', 'r'));
  await step('plan after the rollback', () => work.plan());
  await step('rollback forward', () => kl('rollback', '--to', '@1', '--actor', 'r'));
  await step('rollback of one resource', () =>
    kl('rollback', 'resource', '--address', 'terraform_data.plain', '--to', 'release-1'),
  );
  await step('kl state mv', () =>
    stateEngine('mv', '--from', 'terraform_data.many[0]', '--to', 'terraform_data.many["zero"]'),
  );
  await step('kl state rm', () => stateEngine('rm', '--address', 'terraform_data.many["zero"]'));
  await step('terraform state mv', () =>
    work.try(['state', 'mv', 'terraform_data.each["12"]', 'terraform_data.each["twelve"]']),
  );
  await step('a restored tag moves', () => work.tryKl(['tag', 'set', state, 'moving', 'first']));
}

async function goOnWithApp(stage: Stage, work: WorkingDirectory): Promise<void> {
  const [, b] = await stage.backends();
  const restoredAt = await b.database.lastSerial(work.state);
  const step = (what: string, act: () => Promise<Finished>) =>
    checkStep(stage, work, restoredAt, [what, act]);
  const setC = (input: string) =>
    work.write('c.tf', `resource "terraform_data" "c" { input = "${input}" }\n`);

  await setC('c9');
  await step('kl apply by the state engine, from restored rows', () =>
    work.tryKl(['apply', '-f', 'c.tf', '--confirm-scope'], { protocol: 'state-engine' }),
  );
  await setC('c10');
  await step('kl apply, orchestrated', () =>
    work.tryKl(['apply', '-f', 'c.tf', '--confirm-scope', '--orchestrated']),
  );
  await step('terraform apply', () => work.try(['apply', '-input=false', '-auto-approve']));
  await stage.report.check(`${work.state}: in the end plan at B finds nothing to do`, () =>
    nothingToDo(work),
  );
}

/** The history that went on in B takes the place of A's. */
async function checkWayHome({ report, backends }: Stage, work: WorkingDirectory): Promise<void> {
  const { state } = work;
  const [a, b] = await backends();
  await report.check(`${state}: the history from B overwrites A's`, async () => {
    const { bytes, historyDigest } = await b.archives.export(state);
    const { currentSerial } = await a.archives.manifest(state);
    const { messages, operation } = await a.archives.import(bytes, {
      onConflict: 'OVERWRITE',
      confirmName: state,
      expectedCurrentSerial: currentSerial ?? '',
    });
    deepStrictEqual(messages, []);
    strictEqual(operation?.report?.historyDigest, historyDigest);
  });
  await report.check(`${state}: home again, every row is B's`, async () =>
    sameRows(await rowsOf(b.database, state), await rowsOf(a.database, state)),
  );
  await report.check(`${state}: home again, plan finds at A what it finds at B`, async () => {
    const [here, there] = await onEach([a, b], work, async () => {
      await work.init();
      return work.plan();
    });
    strictEqual(here.exitCode, there.exitCode, here.stdout + here.stderr);
    return `exit code ${here.exitCode}`;
  });
}
