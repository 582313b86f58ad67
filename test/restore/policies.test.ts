import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { connectDatabase } from '../../src/database/connection.ts';
import type { Caller } from '../../src/history/states.ts';
import { findStatesById, findStatesByLabel, listStates } from '../../src/history/states.ts';
import type { ImportRequest } from '../../src/operations/import-state-archive.ts';
import type { OperationRecord } from '../../src/operations/operation-records.ts';
import { toUserError } from '../../src/operations/user-error.ts';
import type { RestoreReport } from '../../src/restore/report.ts';
import { buildArchive } from '../archive/support/build-archive.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  operationOf,
  refusalOf,
  runExport,
  runImport,
  stateIdOf,
  withPrincipal,
} from '../operations/support/backend.ts';
import { annotate, post, postTerraformHistory, TERRAFORM_LINEAGE } from '../operations/support/histories.ts';
import { interceptQueries } from '../operations/support/intercept-queries.ts';
import { recordImport } from '../operations/support/restores.ts';
import { countRows, readStateRows, type StateRows } from '../support/state-rows.ts';
import { setLifecycle, setToWork, standHistory, standRow } from './support/destinations.ts';
import { historyDigestOf, SMALL_LINEAGE, smallHistory, thingsDocument } from './support/histories.ts';
import { applyOverwrite, planOverwrite } from './support/overwrites.ts';
import { writePlainTar } from './support/plain-tar.ts';
import { isPlaced, LABEL, MODES, renderPolicyTable, SITUATIONS } from './support/policy-table.ts';
import { readTableContents } from './support/table-contents.ts';

let backend: Backend;
/** An archive of the state "team/app", whose three versions end at serial 5. */
let archive: string;
let archivedDigest: string;
/** Somebody in a workspace of this test's own. */
let caller: Caller;

const inDirectory = temporaryDirectory();

beforeAll(async () => {
  backend = await openBackend();
  const compressed = inDirectory('small.klstate');
  archivedDigest = (await buildArchive(smallHistory, compressed)).historyDigest;
  archive = inDirectory('small.tar');
  await writePlainTar(compressed, archive);
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

/** What came of an import, in one word, and its report when it was carried out. */
async function outcomeOf(
  running: Promise<OperationRecord>,
): Promise<{ outcome: string; operation: OperationRecord | null; report: RestoreReport | null }> {
  try {
    const operation = await running;
    const outcome = operation.report?.outcome ?? operation.error?.code ?? operation.status;
    return { outcome, operation, report: operation.report };
  } catch (error) {
    const told = toUserError(error);
    if (told === null) throw error;
    return { outcome: told.code, operation: null, report: null };
  }
}

const ARCHIVED_NAME = /^team\/app--archived-[a-z]+-[a-z]+-[0-9a-f]{2}$/;

/** A report without what tells a rehearsal from the performance: the flag, and the random end of an archived name. */
function comparable(report: RestoreReport | null) {
  return { ...report, dryRun: null, name: report?.name.replace(/-[a-z]+-[a-z]+-[0-9a-f]{2}$/, '') };
}

describe('each destination in each mode comes out as docs/restore.md says, rehearsed and performed', () => {
  const cases = SITUATIONS.flatMap(({ title, arrange, outcomes }) =>
    MODES.map((mode, index) => ({ title, arrange, mode, modeTitle: mode.title, expected: outcomes[index] })),
  );

  test.each(cases)('$title × $modeTitle: $expected', async ({ arrange, mode, expected }) => {
    const standing = await arrange(backend.database, caller);
    const input = mode.input(standing);
    const rowsBefore = standing && (await readStateRows(backend.database, standing.id));
    const before = await readTableContents(backend.database);

    const rehearsed = await outcomeOf(runImport(backend, caller, archive, { ...input, dryRun: true }));
    expect(rehearsed.outcome).toBe(expected);
    expect(await readTableContents(backend.database)).toEqual(before);

    const performed = await outcomeOf(runImport(backend, caller, archive, input));
    expect(performed.outcome).toBe(expected);
    expect(comparable(rehearsed.report)).toEqual(comparable(performed.report));
    if (performed.operation?.status !== 'SUCCEEDED') {
      expect(isPlaced(performed.outcome)).toBe(false);
      expect(await readTableContents(backend.database)).toEqual(before);
      return;
    }
    const restoredId = stateIdOf(performed.operation);
    expect(await historyDigestOf(backend.database, restoredId)).toBe(archivedDigest);
    if (performed.outcome === 'REPLACED') {
      expect(restoredId).toBe(standing?.id);
    } else {
      expect(restoredId).not.toBe(standing?.id);
      if (standing) expect(await readStateRows(backend.database, standing.id)).toEqual(rowsBefore);
    }
  });

  test('docs/restore.md prints this table (UPDATE_DOCS=1 rewrites it)', async () => {
    const page = new URL('../../docs/restore.md', import.meta.url);
    const text = await readFile(page, 'utf8');
    const current = text.replace(
      /(<!-- policies: .*? -->\n).*?(\n<!-- end of policies -->)/s,
      (_all, start: string, end: string) => `${start}\n${renderPolicyTable()}${end}`,
    );
    if (process.env.UPDATE_DOCS === '1') await writeFile(page, current);
    else expect(text).toBe(current);
    expect(current).toContain('| taken by a locked state |');
  });
});

describe('a dry run', () => {
  test.each(MODES.slice(0, 5))('in mode $title leaves a record of itself and nothing else', async (mode) => {
    const standing = mode.title.includes('OVERWRITE')
      ? await standHistory(backend.database, caller, LABEL)
      : null;
    const before = await readTableContents(backend.database, 'state_archive');
    const operation = await runImport(backend, caller, archive, { ...mode.input(standing), dryRun: true });
    expect(operation).toMatchObject({ status: 'SUCCEEDED', stateId: null, replacedOperationId: null });
    expect(operation.report).toMatchObject({
      dryRun: true,
      versions: 3,
      tags: 1,
      events: 2,
      resourceSpans: 3,
    });
    const after = await readTableContents(backend.database, 'state_archive');
    const ofRecords = 'state_archive.operation';
    expect({ ...after, [ofRecords]: null }).toEqual({ ...before, [ofRecords]: null });
    expect(after[ofRecords]?.rows).toBe((before[ofRecords]?.rows ?? 0) + 1);
  });
});

const confirmed = (expectedCurrentSerial: bigint | null, label = LABEL): Partial<ImportRequest> => ({
  label,
  onConflict: { kind: 'OVERWRITE', confirmName: label, expectedCurrentSerial },
});

describe('an overwrite', () => {
  test('exports the old history first, and that archive undoes it', async () => {
    const stateId = await postTerraformHistory(backend.database, caller, LABEL);
    await annotate(backend.database, stateId);
    const oldDigest = await historyDigestOf(backend.database, stateId);
    const old = await readStateRows(backend.database, stateId);

    const overwriting = await runImport(backend, caller, archive, confirmed(10n));
    expect(overwriting).toMatchObject({ status: 'SUCCEEDED', stateId });
    expect(overwriting.report).toMatchObject({ outcome: 'REPLACED', replacedVersions: 10, versions: 3 });
    const kept = await operationOf(backend, caller, overwriting.replacedOperationId ?? '');
    expect(kept).toMatchObject({
      kind: 'EXPORT',
      status: 'SUCCEEDED',
      stateId,
      archive: { historyDigest: oldDigest },
    });

    const undoing = await runImport(backend, caller, archivePath(backend, kept), confirmed(5n));
    expect(undoing).toMatchObject({ status: 'SUCCEEDED', stateId });
    expect(await historyDigestOf(backend.database, stateId)).toBe(oldDigest);
    const restored = await readStateRows(backend.database, stateId);
    for (const table of ['state_versions', 'state_version_tags', 'resources', 'outputs']) {
      expect(restored[table]).toEqual(old[table]);
    }
  });

  test('keeps the row: its id, its name and its lock policy; lineage, creation time and pointer are the archive’s', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    await backend.database.pool.query(
      "update states set exclusive_locks = true, coexistence_mode = 'strict' where id = $1",
      [id],
    );
    await runImport(backend, caller, archive, confirmed(2n));
    const { states, ...rows } = await readStateRows(backend.database, id);
    expect(states).toEqual([
      expect.objectContaining({
        name: caller.namespace.namePrefix + LABEL,
        lineage: SMALL_LINEAGE,
        current_version_id: 'version 5',
        created_at: '2026-03-02 10:00:00.000118+00',
        lifecycle_status: 'active',
        exclusive_locks: 'true',
        coexistence_mode: 'strict',
      }),
    ]);
    expect(rows.state_versions?.map(({ serial }) => serial)).toEqual(['1', '2', '5']);
    expect(rows.events?.map(({ kind }) => kind).sort()).toEqual(['state_import', 'state_write', 'tag.set']);
  });

  test('leaves the old events on record, without a state and without a version, and otherwise as they were', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    await backend.database.pool.query(
      `insert into events (tenant_id, kind, state_id, actor, payload)
       select tenant_id, 'lock_acquire', id, 'bob', '{"lock_id": "l-1"}' from states where id = $1`,
      [id],
    );
    const readEvents = async (condition: string) => {
      const { rows } = await backend.database.pool.query<Record<string, unknown>>(
        `select to_jsonb(event) - 'state_id' - 'state_version_id' as event, state_id, state_version_id
         from events event where tenant_id = $1 and ${condition} order by id`,
        [caller.namespace.tenantId],
      );
      return rows;
    };
    const old = await readEvents('state_id is not null');
    expect(old).toHaveLength(3);
    await runImport(backend, caller, archive, confirmed(2n));
    const detached = await readEvents("state_id is null and kind <> 'state_export'");
    expect(detached).toEqual(old.map((row) => ({ ...row, state_id: null, state_version_id: null })));
    // The export of the old history is on record too.
    expect(await readEvents("state_id is null and kind = 'state_export'")).toHaveLength(1);
  });

  test('leaves nothing of the old history but its events: no version, row, run or reservation, and no digest', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    for (const work of ['finishedApply', 'finishedRefresh', 'expiredReservation'] as const) {
      await setToWork(backend.database, id, work);
    }
    await runExport(backend, caller, LABEL);
    await runImport(backend, caller, archive, confirmed(2n));
    const rows = await readStateRows(backend.database, id);
    const filled = Object.keys(rows).filter((table) => rows[table]?.length !== 0);
    expect(filled.sort()).toEqual([
      'events',
      'outputs',
      'resources',
      'state_version_tags',
      'state_versions',
      'states',
    ]);
    expect(JSON.stringify([rows.state_versions, rows.resources])).not.toContain('o-1');
    const strays = await backend.database.pool.query(
      `select state_version_id from state_archive.version_digest
       where state_version_id not in (select id from state_versions)`,
    );
    expect(strays.rows).toEqual([]);
  });

  test('of an empty state has nothing to export, and says so', async () => {
    await standRow(backend.database, caller, LABEL);
    const operation = await runImport(backend, caller, archive, confirmed(null));
    expect(operation).toMatchObject({ status: 'SUCCEEDED', replacedOperationId: null });
    expect(operation.report).toMatchObject({ outcome: 'REPLACED', replacedVersions: 0 });
  });

  test('of a state whose pointer was lost is refused: its versions could not be exported first', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    await backend.database.pool.query('update states set current_version_id = null where id = $1', [id]);
    const before = await readTableContents(backend.database);
    const refusal = await refusalOf(runImport(backend, caller, archive, confirmed(null)));
    expect(refusal.code).toBe('HISTORY_INCONSISTENT');
    expect(await readTableContents(backend.database)).toEqual(before);
  });

  test('can be done again with the same archive: other ids, the same history', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    const idsOf = async () => {
      const { rows } = await backend.database.pool.query<{ id: string }>(
        'select id from state_versions where state_id = $1 union select id from events where state_id = $1',
        [id],
      );
      return rows.map((row) => row.id);
    };
    const first = await runImport(backend, caller, archive, confirmed(2n));
    const firstIds = await idsOf();
    const second = await runImport(backend, caller, archive, confirmed(5n));
    expect([first.status, second.status]).toEqual(['SUCCEEDED', 'SUCCEEDED']);
    expect(await historyDigestOf(backend.database, id)).toBe(archivedDigest);
    expect(second.report?.replacedVersions).toBe(3);
    const kept = await operationOf(backend, caller, second.replacedOperationId ?? '');
    expect(kept.archive?.historyDigest).toBe(archivedDigest);
    expect((await idsOf()).filter((one) => firstIds.includes(one))).toEqual([]);
  });

  test('needs the scope state.overwrite, and without it not a row is written, not even of the attempt', async () => {
    await standHistory(backend.database, caller, LABEL);
    const scopes = new Set([...caller.principal.scopes].filter((scope) => scope !== 'state.overwrite'));
    const before = await countRows(backend.database);
    const attempt = runImport(backend, withPrincipal(caller, { scopes }), archive, confirmed(2n));
    await expect(attempt).rejects.toMatchObject({
      name: 'NotPermittedError',
      message: expect.stringContaining('state.overwrite'),
    });
    expect(await countRows(backend.database)).toEqual(before);
  });

  describe('between its plan and its transaction', () => {
    test.each([
      [
        'a version that was appended',
        'STALE_DESTINATION',
        (_id: string) => post(backend.database, caller, LABEL, thingsDocument(3n, {}, '')),
      ],
      ['a suspension', 'STATE_NOT_ACTIVE', (id: string) => setLifecycle(backend.database, id, 'suspended')],
      ['a lock', 'STATE_LOCKED', (id: string) => setToWork(backend.database, id, 'lock')],
      [
        'a deletion',
        'STATE_NOT_FOUND',
        (id: string) => backend.database.pool.query('delete from states where id = $1', [id]),
      ],
      [
        'a twin of the lineage',
        'LINEAGE_IN_USE',
        (_id: string) => standHistory(backend.database, caller, 'team/twin', SMALL_LINEAGE),
      ],
    ])('%s refuses it with %s, and what was there stays', async (_what, code, happening) => {
      const { id } = await standHistory(backend.database, caller, LABEL);
      const plan = await planOverwrite(backend, caller, archive, LABEL, 2n);
      const operationId = await recordImport(backend.database, caller, LABEL);
      await happening(id);
      const before = await readTableContents(backend.database);
      await expect(applyOverwrite(backend.database, plan, operationId)).rejects.toMatchObject({ code });
      expect(await readTableContents(backend.database)).toEqual(before);
    });
  });

  test.each([
    ['the old history cannot be exported', { archiveReplaced: fault }],
    ['its success cannot be recorded', { beforeCommit: fault }],
  ])('when %s, changes nothing', async (_what, faults) => {
    await standHistory(backend.database, caller, LABEL);
    const plan = await planOverwrite(backend, caller, archive, LABEL, 2n);
    const operationId = await recordImport(backend.database, caller, LABEL);
    const before = await readTableContents(backend.database);
    await expect(applyOverwrite(backend.database, plan, operationId, faults)).rejects.toThrow('a fault');
    expect(await readTableContents(backend.database)).toEqual(before);
  });

  test('makes writers wait, and what they write comes on top of the restored history', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    const plan = await planOverwrite(backend, caller, archive, LABEL, 2n);
    const operationId = await recordImport(backend.database, caller, LABEL);
    let written: Promise<{ serial: bigint }> | undefined;
    await applyOverwrite(backend.database, plan, operationId, {
      beforeCommit: async () => {
        written = post(backend.database, caller, LABEL, thingsDocument(3n, { late: '{}' }, ''));
        await untilItWaits(written);
      },
    });
    expect((await written)?.serial).toBe(6n);
    const { state_versions } = await readStateRows(backend.database, id);
    expect(state_versions?.map(({ serial }) => serial).sort()).toEqual(['1', '2', '5', '6']);
  });

  test.each([
    [
      'a tag was set',
      ({ id, current }: { id: string; current: string }) =>
        backend.database.pool.query(
          `insert into state_version_tags (tenant_id, state_id, state_version_id, tag) values ($1, $2, $3, 'late')`,
          [caller.namespace.tenantId, id, current],
        ),
    ],
    [
      'a version was written behind the pointer',
      ({ id }: { id: string }) =>
        backend.database.pool.query(
          `insert into state_versions (tenant_id, state_id, serial, raw_state) values ($1, $2, 1000, '{}')`,
          [caller.namespace.tenantId, id],
        ),
    ],
  ])('replaces no other history than the one that was exported: %s meanwhile', async (_what, happening) => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    const { rows } = await backend.database.pool.query(
      'select current_version_id from states where id = $1',
      [id],
    );
    let before: unknown;
    // Once the export is on record.
    const database = interceptQueries(backend.database, async (statement) => {
      if (!/for update$/.test(statement)) return;
      await happening({ id, current: rows[0].current_version_id });
      before = await readStateRows(backend.database, id);
    });
    const refusal = await refusalOf(runImport(backend, { ...caller, database }, archive, confirmed(2n)));
    expect(refusal.code).toBe('STALE_DESTINATION');
    expect(await readStateRows(backend.database, id)).toEqual(before);
  });

  test('lets no apply begin that it would delete: one that comes first refuses it, one that comes later waits', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    const begin = () => setToWork(backend.database, id, 'runningApply');
    const plan = await planOverwrite(backend, caller, archive, LABEL, 2n);
    let waiting: Promise<unknown> | undefined;
    await applyOverwrite(backend.database, plan, await recordImport(backend.database, caller, LABEL), {
      beforeCommit: async () => {
        waiting = begin();
        await untilItWaits(waiting);
        const { rows } = await backend.database.pool.query('select from apply_runs where state_id = $1', [
          id,
        ]);
        expect(rows).toEqual([]);
      },
    });
    // It began at a version that is gone by now: its foreign key refuses it.
    await expect(waiting).rejects.toMatchObject({ code: '23503' });

    const again = await planOverwrite(backend, caller, archive, LABEL, 5n);
    const refused = applyOverwrite(
      backend.database,
      again,
      await recordImport(backend.database, caller, LABEL),
      {
        archiveReplaced: async (stateId) => {
          await begin();
          return historyDigestOf(backend.database, stateId);
        },
      },
    );
    await expect(refused).rejects.toMatchObject({ code: 'STATE_LOCKED' });
    const { rows } = await backend.database.pool.query('select status from apply_runs where state_id = $1', [
      id,
    ]);
    expect(rows).toEqual([{ status: 'running' }]);
  });

  test('never holds two connections: as many at once as the pool has all come through', async () => {
    const labels = ['one', 'two', 'three'];
    for (const label of labels) await standHistory(backend.database, caller, label);
    const small = connectDatabase({
      connectionString: backend.connectionString,
      maxConnections: labels.length,
    });
    try {
      const operations = await Promise.all(
        labels.map((label) =>
          runImport(backend, { ...caller, database: small }, archive, {
            label,
            allowSharedLineage: true,
            onConflict: { kind: 'OVERWRITE', confirmName: label, expectedCurrentSerial: 2n },
          }),
        ),
      );
      expect(operations.map(({ status }) => status)).toEqual(labels.map(() => 'SUCCEEDED'));
    } finally {
      await small.close();
    }
  });

  test('of two at the same moment expecting the same serial, exactly one wins', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    const outcomes = await Promise.all([
      outcomeOf(runImport(backend, caller, archive, confirmed(2n))),
      outcomeOf(runImport(backend, caller, archive, confirmed(2n))),
    ]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['REPLACED', 'STALE_DESTINATION']);
    expect(await historyDigestOf(backend.database, id)).toBe(archivedDigest);
  });

  test('of two at the same moment, exactly one wins even when the archive ends at the serial they expect', async () => {
    const { id } = await standHistory(backend.database, caller, LABEL);
    await runImport(backend, caller, archive, confirmed(2n));
    const plans = [
      await planOverwrite(backend, caller, archive, LABEL, 5n),
      await planOverwrite(backend, caller, archive, LABEL, 5n),
    ];
    const settled = await Promise.allSettled(
      plans.map(async (plan) =>
        applyOverwrite(backend.database, plan, await recordImport(backend.database, caller, LABEL)),
      ),
    );
    expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(settled.find((one) => one.status === 'rejected')?.reason).toMatchObject({
      code: 'STALE_DESTINATION',
    });
    expect(await historyDigestOf(backend.database, id)).toBe(archivedDigest);
  });
});

async function fault(): Promise<never> {
  throw new Error('a fault');
}

/** Looks until a transaction waits for a lock another one holds; the work that should wait ends the looking, too. */
async function untilItWaits(work: Promise<unknown>): Promise<void> {
  let isOver = false;
  const noteEnd = () => {
    isOver = true;
  };
  work.then(noteEnd, noteEnd);
  while (!isOver) {
    const { rows } = await backend.database.pool.query(
      `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    if (rows.length > 0) return;
  }
}

describe('an archived copy', () => {
  const asCopy: Partial<ImportRequest> = { onConflict: { kind: 'ARCHIVED_COPY' } };

  test('is an archived state under Kilolock’s name for one, with who, when and why, and the destination’s lock policy', async () => {
    caller = await createCaller(backend, { lockDefault: 'vanilla' });
    const operation = await runImport(backend, caller, archive, asCopy);
    const { states } = await readStateRows(backend.database, stateIdOf(operation));
    expect(states).toEqual([
      {
        name: caller.namespace.namePrefix + operation.report?.name,
        lineage: SMALL_LINEAGE,
        current_version_id: 'version 5',
        lifecycle_status: 'archived',
        lifecycle_changed_at: states?.[0]?.updated_at,
        lifecycle_changed_by: caller.principal.actor,
        lifecycle_reason: `restored as an archived copy by operation ${operation.id}`,
        created_at: '2026-03-02 10:00:00.000118+00',
        updated_at: expect.any(String),
        tenant_id: 'own',
        exclusive_locks: 'true',
        coexistence_mode: 'strict',
      },
    ]);
    expect(operation.report?.name).toMatch(ARCHIVED_NAME);
  });

  test('holds the whole history, read from its rows, and is not shown to anybody', async () => {
    const operation = await runImport(backend, caller, archive, asCopy);
    const id = stateIdOf(operation);
    expect(await historyDigestOf(backend.database, id)).toBe(archivedDigest);
    const db = backend.database.for('read');
    const name = operation.report?.name ?? '';
    expect(await findStatesById(db, caller, [id])).toEqual(new Map());
    expect(await findStatesByLabel(db, caller, [name])).toEqual(new Map());
    expect(await listStates(db, caller, { labelPrefix: '', after: null, limit: 100 })).toEqual([]);
    expect((await refusalOf(runExport(backend, caller, name))).code).toBe('STATE_NOT_FOUND');
  });

  test('can be made again and again beside the state it is a copy of', async () => {
    const original = await runImport(backend, caller, archive);
    const rows = await readStateRows(backend.database, stateIdOf(original));
    const copies = await Promise.all([1, 2, 3].map(() => runImport(backend, caller, archive, asCopy)));
    expect(copies.map(({ status }) => status)).toEqual(['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED']);
    expect(new Set(copies.map(({ stateId }) => stateId)).size).toBe(3);
    expect(await readStateRows(backend.database, stateIdOf(original))).toEqual(rows);
  });

  test('is brought back as Kilolock brings one back, and exports the same history', async () => {
    const operation = await runImport(backend, caller, archive, asCopy);
    await backend.database.pool.query(
      "update states set name = $2, lifecycle_status = 'active' where id = $1",
      [stateIdOf(operation), `${caller.namespace.namePrefix}${LABEL}`],
    );
    const exported = await runExport(backend, caller, LABEL);
    expect(exported.archive?.historyDigest).toBe(archivedDigest);
  });

  test('holds its name, as an archived state does in Kilolock: no state of its lineage is begun there', async () => {
    await runImport(backend, caller, archive, asCopy);
    await expect(
      post(backend.database, caller, LABEL, thingsDocument(1n, {}, SMALL_LINEAGE)),
    ).rejects.toMatchObject({ code: 'STATE_NOT_ACTIVE' });
  });

  test('of a real history has every row of the source but the state row itself', async () => {
    const id = await postTerraformHistory(backend.database, caller, 'demo/network');
    const source: StateRows = await readStateRows(backend.database, id);
    expect(source.states?.[0]?.lineage).toBe(TERRAFORM_LINEAGE);
    const exported = archivePath(backend, await runExport(backend, caller, 'demo/network'));
    const copy = await readStateRows(
      backend.database,
      stateIdOf(await runImport(backend, caller, exported, asCopy)),
    );
    for (const table of ['state_versions', 'resources', 'outputs'])
      expect(copy[table]).toEqual(source[table]);
  });
});
