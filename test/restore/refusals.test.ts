import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { DEFAULT_ARCHIVE_LIMITS } from '../../src/archive/format.ts';
import type { Caller } from '../../src/history/states.ts';
import type { ImportRequest } from '../../src/operations/import-state-archive.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import {
  archiveOfOthers,
  type Backend,
  createCaller,
  createEnvironment,
  nothingUnderWay,
  openBackend,
  refusalOf,
  runImport,
  stateIdOf,
  storedFiles,
  withPrincipal,
} from '../operations/support/backend.ts';
import { post, postTerraformHistory, TERRAFORM_LINEAGE } from '../operations/support/histories.ts';
import { apply, planOf, recordImport } from '../operations/support/restores.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import { countRows, readStateRows } from '../support/state-rows.ts';

let backend: Backend;
/** An archive of ten versions, taken from the state "demo/network" of another workspace. */
let archive: string;
/** How many rows of `outputs` it stands for. */
let outputs: number;
/** Somebody in a workspace of this test's own. */
let caller: Caller;

beforeAll(async () => {
  backend = await openBackend();
  archive = await archiveOfOthers(backend, 'demo/network', postTerraformHistory);
  outputs = (await countRows(backend.database))['public.outputs'] ?? 0;
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const inDirectory = temporaryDirectory();

/** The refusal of an import, once it is certain that it left nothing in Kilolock's tables and no file. */
async function refused(path: string, input: Partial<ImportRequest> = {}, by: Caller = caller) {
  const before = await countRows(backend.database, ['public']);
  await nothingUnderWay(backend);
  const files = await storedFiles(backend);
  const refusal = await refusalOf(runImport(backend, by, path, input));
  expect(await countRows(backend.database, ['public'])).toEqual(before);
  await nothingUnderWay(backend);
  expect(await storedFiles(backend)).toEqual(files);
  return refusal;
}

async function insertState(label: string, columns: { lineage?: string | null; status?: string } = {}) {
  const { namespace } = caller;
  await backend.database.pool.query(
    'insert into states (tenant_id, name, lineage, lifecycle_status) values ($1, $2, $3, $4)',
    [namespace.tenantId, namespace.namePrefix + label, columns.lineage ?? null, columns.status ?? 'active'],
  );
}

const OTHER_LINEAGE = '11111111-2222-4333-8444-555555555555';

describe('a name that is taken is refused with STATE_ALREADY_EXISTS', () => {
  test('by an import before: not one row more in any table, and the first stays as it was', async () => {
    const first = await runImport(backend, caller, archive);
    const rows = await readStateRows(backend.database, stateIdOf(first));
    const before = await countRows(backend.database);
    const refusal = await refused(archive, { allowSharedLineage: true });
    expect(refusal).toMatchObject({ code: 'STATE_ALREADY_EXISTS', path: ['input', 'name'] });
    expect(refusal.message).toContain('demo/network');
    expect(await countRows(backend.database)).toEqual(before);
    expect(await readStateRows(backend.database, stateIdOf(first))).toEqual(rows);
  });

  test.each(['suspended', 'archived'])('by a state that is %s', async (status) => {
    await insertState('demo/network', { status, lineage: OTHER_LINEAGE });
    expect(await refused(archive)).toMatchObject({
      code: 'STATE_ALREADY_EXISTS',
      message: expect.stringContaining(status),
    });
  });

  test('by the empty shell a lock left', async () => {
    await insertState('demo/network');
    expect(await refused(archive)).toMatchObject({
      code: 'STATE_ALREADY_EXISTS',
      message: expect.stringContaining('lock'),
    });
  });

  test.each([
    ['the same', () => TERRAFORM_LINEAGE],
    ['no known', () => null],
  ])('by an archived state of %s lineage that once had it', async (_which, lineage) => {
    await insertState('demo/network--archived-brave-otter-3f', { status: 'archived', lineage: lineage() });
    expect(await refused(archive, { allowSharedLineage: true })).toMatchObject({
      code: 'STATE_ALREADY_EXISTS',
      message: expect.stringContaining('archived'),
    });
  });

  test('but not by an archived state of another lineage, nor by one whose name only looks alike', async () => {
    await insertState('demo/network--archived-brave-otter-3f', {
      status: 'archived',
      lineage: OTHER_LINEAGE,
    });
    await insertState('demo_network--archived-brave-otter-3f', { status: 'archived' });
    await insertState('demo/network2', { lineage: OTHER_LINEAGE });
    await insertState('demo/Network', { lineage: OTHER_LINEAGE });
    expect((await runImport(backend, caller, archive)).status).toBe('SUCCEEDED');
  });
});

describe('a lineage that is in use', () => {
  test('is refused with LINEAGE_IN_USE, without a word about the other state, and allowed when asked for', async () => {
    await insertState('secret/other', { lineage: TERRAFORM_LINEAGE });
    const refusal = await refused(archive, { label: 'copy' });
    expect(refusal).toMatchObject({ code: 'LINEAGE_IN_USE', path: ['input', 'allowSharedLineage'] });
    expect(refusal.message).not.toContain('secret/other');
    const copy = await runImport(backend, caller, archive, { label: 'copy', allowSharedLineage: true });
    expect(copy.status).toBe('SUCCEEDED');
  });

  test.each(['suspended', 'archived'])('does not count for a state that is %s', async (status) => {
    await insertState('old', { lineage: TERRAFORM_LINEAGE, status });
    expect((await runImport(backend, caller, archive, { label: 'copy' })).status).toBe('SUCCEEDED');
  });

  test('does not count in another environment of the workspace', async () => {
    await insertState('live', { lineage: TERRAFORM_LINEAGE });
    const neighbour = await createEnvironment(backend, caller.namespace.workspace);
    expect((await runImport(backend, neighbour, archive, { label: 'copy' })).status).toBe('SUCCEEDED');
  });
});

describe('a quota', () => {
  /** Gives the caller's workspace these limits. */
  async function limit(limits: { max_state_resources?: number; max_environment_resources?: number }) {
    await backend.database
      .for('record')
      .updateTable('tenants')
      .set(limits)
      .where('id', '=', caller.namespace.tenantId)
      .execute();
  }

  // The current version of the archive holds eight managed instances.
  test('of a state: its current version may go half over the limit, rounded up, and no further', async () => {
    await limit({ max_state_resources: 4 });
    expect(await refused(archive)).toMatchObject({
      code: 'QUOTA_EXCEEDED',
      message: expect.stringMatching(/4 managed resources and at most 6.*make it 8/),
    });
    await limit({ max_state_resources: 5 });
    expect((await runImport(backend, caller, archive)).status).toBe('SUCCEEDED');
  });

  test('of an environment counts what the other active states hold', async () => {
    await runImport(backend, caller, archive, { label: 'first' });
    await limit({ max_environment_resources: 9 });
    expect(await refused(archive, { label: 'second', allowSharedLineage: true })).toMatchObject({
      code: 'QUOTA_EXCEEDED',
      message: expect.stringMatching(/at most 14.*make it 16/),
    });
  });
});

describe('a file that is no whole archive', () => {
  test.each([
    ['cut off', (bytes: Buffer) => bytes.subarray(0, bytes.length - 40), 'ARCHIVE_TRUNCATED'],
    ['cut to its beginning', (bytes: Buffer) => bytes.subarray(0, 30), 'ARCHIVE_TRUNCATED'],
    ['that is empty', () => Buffer.alloc(0), 'ARCHIVE_UNSUPPORTED_FORMAT'],
    [
      'with a byte flipped in the middle',
      (bytes: Buffer) => flipped(bytes, bytes.length >> 1),
      'ARCHIVE_CORRUPT',
    ],
    ['that is something else', () => Buffer.from('{"version": 4}'), 'ARCHIVE_UNSUPPORTED_FORMAT'],
    ['with more behind its end', (bytes: Buffer) => Buffer.concat([bytes, bytes]), 'ARCHIVE_CORRUPT'],
  ])('%s is refused', async (_what, damage, code) => {
    const path = inDirectory('damaged.klstate');
    await writeFile(path, damage(await readFile(archive)));
    expect(await refused(path)).toMatchObject({ code, path: ['input', 'file'] });
  });

  test('is refused when it is larger than the service reads', async () => {
    const services = {
      ...backend.services,
      limits: { ...DEFAULT_ARCHIVE_LIMITS, maxArchiveBytes: 100n },
    };
    const refusal = await refusalOf(runImport({ services }, caller, archive));
    expect(refusal.code).toBe('ARCHIVE_TOO_LARGE');
  });

  test('is refused before there is an operation when its digest is not the expected one', async () => {
    const before = await countRows(backend.database);
    const refusal = await refused(archive, { expectedSha256: '0'.repeat(64) });
    expect(refusal).toMatchObject({ code: 'ARCHIVE_DIGEST_MISMATCH', path: ['input', 'expectedSha256'] });
    expect(await countRows(backend.database)).toEqual(before);
  });

  test('is found out when it changes after it was checked, and nothing of it stays', async () => {
    const path = inDirectory('changing.klstate');
    const bytes = await readFile(archive);
    await writeFile(path, bytes);
    const planned = await prepared(path, 'changing');
    await writeFile(path, flipped(bytes, bytes.length >> 1));
    const before = await countRows(backend.database);
    await expect(carryOut(planned)).rejects.toMatchObject({ code: 'ARCHIVE_CORRUPT' });
    expect(await countRows(backend.database)).toEqual(before);
  });
});

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(at) ^ 0x40, at);
  return copy;
}

test.each([
  ['is empty', ''],
  ['is padded', ' padded'],
  ['has an empty segment', 'a//b'],
  ['climbs', '../up'],
  ['stands still', 'a/./b'],
  ['has a control character', 'tab\there'],
  ['has a zero width space', 'prod\u200b/network'],
  ['is written from right to left', 'prod/\u202ekrowten'],
  ['has a line separator', 'prod\u2028network'],
  ['is longer than 1024 bytes', 'é'.repeat(513)],
  ['is no Unicode', '\ud800'],
])('a label that %s cannot be restored under', async (_what, label) => {
  expect(await refused(archive, { label })).toMatchObject({ code: 'INVALID_INPUT', path: ['input', 'name'] });
});

test('a label outside the caller’s state patterns is denied, whether or not the state exists', async () => {
  await insertState('prod/taken');
  const confined = withPrincipal(caller, { statePatterns: ['dev/*'] });
  const before = await countRows(backend.database);
  for (const label of ['prod/taken', 'prod/free', 'dev']) {
    await expect(runImport(backend, confined, archive, { label })).rejects.toMatchObject({
      name: 'NotPermittedError',
      message: 'Your credential does not cover a state of this name.',
    });
  }
  expect(await countRows(backend.database)).toEqual(before);
  expect((await runImport(backend, confined, archive, { label: 'dev/x' })).status).toBe('SUCCEEDED');
});

test('an import is answered while another restore of the same lineage is at work', async () => {
  const { plan, operationId } = await prepared(archive, 'in-hand');
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const answered: string[] = [];
  const reached = new Promise<void>((resolve) => {
    void apply(backend.database, plan, operationId, async () => {
      resolve();
      await gate;
    }).finally(() => answered.push('restored'));
  });
  await reached;
  const second = runImport(backend, caller, archive, { label: 'second', waitSeconds: 0 })
    .catch(() => {})
    .finally(() => answered.push('answered'));
  // A bound, not a pause: the answer takes milliseconds unless it waits.
  const bound = setTimeout(open, 60_000);
  await second;
  clearTimeout(bound);
  open();
  expect(answered[0]).toBe('answered');
});

describe('two restores at the same moment', () => {
  test('of one name: one wins, the other is told STATE_ALREADY_EXISTS, and only one left rows', async () => {
    const both = [await prepared(archive, 'race', true), await prepared(archive, 'race', true)];
    const before = await countRows(backend.database, ['public']);
    const { won, lost } = await race(both);
    expect(won).toHaveLength(1);
    expect(lost).toEqual([expect.objectContaining({ code: 'STATE_ALREADY_EXISTS' })]);
    await expectOneMore(before);
  });

  test('of one lineage under two names: one wins, the other is told LINEAGE_IN_USE', async () => {
    const both = [await prepared(archive, 'left'), await prepared(archive, 'right')];
    const before = await countRows(backend.database, ['public']);
    const { won, lost } = await race(both);
    expect(won).toHaveLength(1);
    expect(lost).toEqual([expect.objectContaining({ code: 'LINEAGE_IN_USE' })]);
    await expectOneMore(before);
  });

  test('of one lineage under two names are both done when both asked for a shared lineage', async () => {
    const { won } = await race([
      await prepared(archive, 'left', true),
      await prepared(archive, 'right', true),
    ]);
    expect(won).toHaveLength(2);
  });

  test('of one name by way of operations: one succeeds, one fails with STATE_ALREADY_EXISTS', async () => {
    const outcomes = await Promise.all(
      [1, 2].map(() =>
        runImport(backend, caller, archive, { allowSharedLineage: true }).then(
          ({ status, error }) => error?.code ?? status,
          (error) => error.code,
        ),
      ),
    );
    expect(outcomes.sort()).toEqual(['STATE_ALREADY_EXISTS', 'SUCCEEDED']);
  });

  test('of a snapshot and an archive: the name goes to one of them, and the other tells why', async () => {
    const [first] = loadTerraformHistory();
    const planned = await prepared(archive, 'race');
    const outcomes = await Promise.allSettled([
      carryOut(planned),
      post(backend.database, caller, 'race', first?.document ?? ''),
    ]);
    const states = await backend.database.pool.query('select id from states where name = $1', [
      `${caller.namespace.namePrefix}race`,
    ]);
    expect(states.rows).toHaveLength(1);
    // A snapshot that comes second is the next version of what was restored.
    if (outcomes[0].status === 'rejected') {
      expect(outcomes[0].reason).toMatchObject({ code: 'STATE_ALREADY_EXISTS' });
      expect(outcomes[1].status).toBe('fulfilled');
    } else {
      expect(outcomes[1]).toMatchObject({ status: 'fulfilled', value: { serial: 11n } });
    }
  });
});

/** The plan of a restore into the caller's environment, and the operation it is to belong to. */
async function prepared(path: string, label: string, allowSharedLineage = false) {
  const plan = await planOf(backend, caller, path, label, { allowSharedLineage });
  return { plan, operationId: await recordImport(backend.database, caller, label) };
}

type Prepared = Awaited<ReturnType<typeof prepared>>;

function carryOut({ plan, operationId }: Prepared): Promise<{ stateId: string }> {
  return apply(backend.database, plan, operationId);
}

async function race(contenders: readonly Prepared[]): Promise<{ won: string[]; lost: unknown[] }> {
  const outcomes = await Promise.allSettled(contenders.map(carryOut));
  return {
    won: outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value.stateId : [])),
    lost: outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? outcome.reason : [])),
  };
}

/** One copy of the archive more than `before`, and nothing else. */
async function expectOneMore(before: Readonly<Record<string, number>>): Promise<void> {
  expect(await countRows(backend.database, ['public'])).toEqual({
    ...before,
    'public.states': (before['public.states'] ?? 0) + 1,
    'public.state_versions': (before['public.state_versions'] ?? 0) + 10,
    'public.resources': (before['public.resources'] ?? 0) + 25,
    'public.events': (before['public.events'] ?? 0) + 11,
    'public.outputs': (before['public.outputs'] ?? 0) + outputs,
  });
}
