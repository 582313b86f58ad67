import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';
import { writeArchive } from '../../src/archive/writer.ts';
import { inTransaction } from '../../src/database/connection.ts';
import { DigestBudget } from '../../src/history/digest-budget.ts';
import { openExportSource, StateEmptyError } from '../../src/history/export-source.ts';
import { HistoryInconsistentError } from '../../src/history/inconsistent.ts';
import { readManifestPreviews } from '../../src/history/manifest-preview.ts';
import { type Caller, findStatesById } from '../../src/history/states.ts';
import { takeApart } from '../archive/support/handmade.ts';
import { readMembers } from '../archive/support/read-members.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  runExport,
} from '../operations/support/backend.ts';
import { annotate, post, postTerraformHistory } from '../operations/support/histories.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';

let backend: Backend;
let caller: Caller;
beforeAll(async () => {
  backend = await openBackend();
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const inDirectory = temporaryDirectory();
const documents = loadTerraformHistory().map(({ document }) => document);

const EXPORT_RECORD = {
  exportedAt: '2026-04-01T08:00:00.000000Z',
  exportedBy: 'support@example.org',
  source: { workspace: 'ws', environment: 'env', stateName: 'ws/env/app' },
  tool: { name: 'test', version: '0' },
};

/** Writes the archive of a state; `atRawStates` runs when everything but the raw states has been read. */
async function archive(stateId: string, path: string, atRawStates: () => Promise<unknown> = async () => {}) {
  return inTransaction(backend.database, 'export', async (session) => {
    const state = (await findStatesById(session.db, caller, [stateId])).get(stateId);
    if (state === undefined) throw new Error(`There is no state ${stateId}.`);
    const contents = await openExportSource(session, state, EXPORT_RECORD);
    async function* rawStates() {
      await atRawStates();
      yield* contents.rawStates;
    }
    return writeArchive({ ...contents, rawStates: rawStates() }, path);
  });
}

async function previewOf(stateId: string) {
  const preview = (await readManifestPreviews(backend.database, [stateId], new DigestBudget())).get(stateId);
  if (preview instanceof Error) throw preview;
  return preview;
}

describe('an export sees one consistent cut', () => {
  test('while a writer adds versions, moves tags and the pointer, and writes events', async () => {
    const stateId = await postTerraformHistory(backend.database, caller, 'app');
    await annotate(backend.database, stateId);
    const undisturbed = await archive(stateId, inDirectory('undisturbed.klstate'));
    const disturbed = await archive(stateId, inDirectory('disturbed.klstate'), async () => {
      await post(backend.database, caller, 'app', documents[0] ?? '');
      await backend.database.pool.query(
        `update state_version_tags set state_version_id = (select current_version_id from states where id = $1), updated_at = now()
         where state_id = $1`,
        [stateId],
      );
      await backend.database.pool.query('delete from resources where state_id = $1', [stateId]);
    });
    expect(disturbed.counts).toMatchObject({ versions: 10, tags: 3, resources: 25 });
    expect(disturbed.sha256).toBe(undisturbed.sha256);
    expect((await previewOf(stateId))?.versionCount).toBe(11);
  });

  test('even when the state is deleted under it', async () => {
    const stateId = await postTerraformHistory(backend.database, caller, 'app');
    const path = inDirectory('deleted.klstate');
    await archive(stateId, path, () =>
      backend.database.pool.query('delete from states where id = $1', [stateId]),
    );
    expect((await verifyArchive(path)).counts.versions).toBe(10);
  });
});

test('an export changes nothing in the next one but export.json, and the sums with it', async () => {
  const stateId = await postTerraformHistory(backend.database, caller, 'app');
  await annotate(backend.database, stateId);
  const [first, second] = [await runExport(backend, caller, 'app'), await runExport(backend, caller, 'app')];
  const [before, after] = await Promise.all(
    [first, second].map(async (operation) => takeApart(await readFile(archivePath(backend, operation)))),
  );
  const differing = before?.filter(({ data }, index) => !after?.[index]?.data.equals(data));
  expect(differing?.map(({ name }) => name)).toEqual(['export.json', 'SHA256SUMS']);
  expect(after?.map(({ name }) => name)).toEqual(before?.map(({ name }) => name));
});

test('locks, accesses and what is never a state’s stay behind; every other event travels', async () => {
  const { stateId } = await post(backend.database, caller, 'app', documents[0] ?? '');
  const kinds = [
    'lock_acquire',
    'lock_release',
    'lock_force_release',
    'state_export',
    'state_archive_download',
    'state_support_access',
    'rbac_grant_create',
    'portal_tenant_create',
    'tenant_lifecycle_update',
    'tenantless',
    'state_archive',
    'state_restore',
    'tag.set',
    'state_import',
  ];
  await backend.database.pool.query(
    `insert into events (tenant_id, state_id, kind) select tenant_id, id, unnest($2::text[]) from states where id = $1`,
    [stateId, kinds],
  );
  const travelled: string[] = [];
  const path = inDirectory('events.klstate');
  await archive(stateId, path);
  await readMembers(path, (member) => {
    if (member.kind === 'event') travelled.push(member.event.kind);
  });
  expect(travelled.sort()).toEqual([
    'state_archive',
    'state_import',
    'state_restore',
    'state_write',
    'tag.set',
    'tenantless',
  ]);
  expect((await previewOf(stateId))?.eventCount).toBe(6);
});

describe('a row that no archive can hold is refused by its name', () => {
  let stateId: string;
  beforeEach(async () => {
    ({ stateId } = await post(backend.database, caller, 'app', documents[0] ?? ''));
    await backend.database.pool.query(
      `insert into state_version_tags (tenant_id, state_id, state_version_id, tag)
       select tenant_id, id, current_version_id, 'release' from states where id = $1`,
      [stateId],
    );
  });

  const expectRefusal = async (message: RegExp) => {
    const refusal = { name: 'HistoryInconsistentError', message: expect.stringMatching(message) };
    await expect(archive(stateId, inDirectory('odd.klstate'))).rejects.toMatchObject(refusal);
    return refusal;
  };

  test.each([
    ['states', "created_at = '0044-03-15 12:00:00+00 BC'", /^The state .*created_at/],
    ['states', "updated_at = 'infinity'", /^The state .*updated_at/],
    ['state_versions', "created_at = '0044-03-15 12:00:00+00 BC'", /^The version of serial 1 .*created_at/],
    ['state_versions', "created_at = '-infinity'", /^The version of serial 1 .*created_at/],
    ['state_versions', 'serial = -1', /^The version of serial -1 .*serial/],
    ['state_versions', "created_by = repeat('x', 1048577)", /^The version of serial 1 .*created_by/],
    ['state_versions', "source = repeat('x', 40000000)", /^The texts of the state's versions/],
    ['state_version_tags', "created_at = '10000-01-01 00:00:00+00'", /^Tag "release" .*created_at/],
    ['state_version_tags', "updated_at = 'infinity'", /^Tag "release" .*updated_at/],
    ['state_version_tags', "actor = repeat('x', 1048577)", /^Tag "release" .*actor/],
    ['state_version_tags', "description = repeat('x', 40000000)", /^The texts of the state's tags/],
    ['events', "created_at = 'infinity'", /^Event [0-9a-f-]{36} /],
    ['events', "actor = repeat('x', 1048577)", /^Event [0-9a-f-]{36} /],
    ['events', "kind = repeat('x', 256)", /^Event [0-9a-f-]{36} /],
    ['resources', "created_at = 'infinity'", /^A resource row of "/],
  ])('by preview and export: %s with %s', async (table, change, message) => {
    await backend.database.pool.query(
      `update ${table} set ${change} where ${table === 'states' ? 'id' : 'state_id'} = $1`,
      [stateId],
    );
    const refusal = await expectRefusal(message);
    await expect(previewOf(stateId)).rejects.toMatchObject(refusal);
  });

  test.each([
    [
      'events',
      "payload = (repeat('[', 4001) || repeat(']', 4001))::jsonb",
      /^Event [0-9a-f-]{36} .*4000 deep/,
    ],
    [
      'events',
      "payload = ('[' || repeat('1e131000, ', 40) || '0]')::jsonb",
      /^Event [0-9a-f-]{36} .*payload has 5\d{6} bytes/,
    ],
    ['events', "kind = E'a\\nb'", /^Event [0-9a-f-]{36} .*kind has a control character/],
    ['resources', "attributes_hash = 'h'", /^The resource row of ".*attributes_hash/],
  ])('by the export: %s with %s', async (table, change, message) => {
    await backend.database.pool.query(`update ${table} set ${change} where state_id = $1`, [stateId]);
    await expectRefusal(message);
  });
});

test('more events and spans than one read takes are all there, in order', async () => {
  const { stateId } = await post(backend.database, caller, 'app', documents[0] ?? '');
  // All at one moment: only their ids tell them apart.
  await backend.database.pool.query(
    `insert into events (tenant_id, state_id, kind, payload, created_at)
     select tenant_id, id, 'tag.set', jsonb_build_object('n', n), '2026-03-02T10:00:00Z'
     from states, generate_series(1, 2500) n where id = $1`,
    [stateId],
  );
  await backend.database.pool.query(
    `insert into resources (tenant_id, state_id, address, mode, type, name, provider, attributes_hash, create_serial, delete_serial)
     select tenant_id, id, 't.n[' || n || ']', 'managed', 't', 'n', 'p', encode(sha256(n::text::bytea), 'hex'), 1, 2
     from states, generate_series(1, 2500) n where id = $1`,
    [stateId],
  );
  const seen = new Set<string>();
  const addresses = new Set<string>();
  const path = inDirectory('many.klstate');
  const { counts } = await archive(stateId, path);
  await readMembers(path, (member) => {
    if (member.kind === 'event') seen.add(member.event.payload);
    if (member.kind === 'resource') addresses.add(member.resource.address);
  });
  expect(seen.size).toBe(2501);
  expect(addresses.size).toBe(counts.resources);
  expect(counts.resources).toBeGreaterThan(2500);
});

/** A node of a plan as EXPLAIN tells it in JSON, as far as it matters here. */
interface PlanNode {
  readonly 'Node Type': string;
  readonly Output?: readonly string[];
  readonly 'Temp Written Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** The plans of the statements that an export copies from, in their order: each explained as it was sent, and run. */
async function plansOfExport(stateId: string): Promise<PlanNode[]> {
  const sent: { text: string; values?: unknown[] }[] = [];
  await inTransaction(backend.database, 'export', async (session) => {
    const query = session.client.query.bind(session.client);
    const watch = jest.spyOn(session.client, 'query').mockImplementation((...call: unknown[]) => {
      const [statement, values] = call as [string | { text: string }, unknown[] | undefined];
      const text = typeof statement === 'string' ? statement : statement.text;
      sent.push({ text, ...(values && { values }) });
      return Reflect.apply(query, null, call);
    });
    const state = (await findStatesById(session.db, caller, [stateId])).get(stateId);
    if (state === undefined) throw new Error(`There is no state ${stateId}.`);
    await writeArchive(await openExportSource(session, state, EXPORT_RECORD), inDirectory('plans.klstate'));
    watch.mockRestore();
  });
  return inTransaction(backend.database, 'export', async ({ client }) => {
    const plans: PlanNode[] = [];
    for (const { text, values } of sent) {
      const [, copied] = /^COPY \((.*)\) TO STDOUT/s.exec(text) ?? [];
      if (copied === undefined) {
        await client.query(text, values);
        continue;
      }
      const { rows } = await client.query(`explain (analyze, buffers, verbose, format json) ${copied}`);
      plans.push(JSON.parse(rows[0]['QUERY PLAN'])[0].Plan);
    }
    return plans;
  });
}

function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

test('the server sorts no text, and writes no raw state or payload to its disk', async () => {
  const { stateId } = await post(backend.database, caller, 'app', documents[0] ?? '');
  const { pool } = backend.database;
  // More than a sort holds in memory, each small enough to stand in its row: what no sort may carry along.
  await pool.query(
    `insert into state_versions (tenant_id, state_id, serial, raw_state, source)
     select tenant_id, state_id, n, raw_state || jsonb_build_object('serial', n, 'resources', '[]'::jsonb,
         'check_results', (select jsonb_agg(md5(n || '.' || k)) from generate_series(1, 40) k)), source
     from state_versions, generate_series(100, 5099) n where state_id = $1`,
    [stateId],
  );
  await pool.query(
    `insert into events (tenant_id, state_id, kind, payload, created_at)
     select tenant_id, id, 'tag.set', (select jsonb_object_agg(k, md5(n || '.' || k)) from generate_series(1, 40) k),
       now() + n * interval '1 s'
     from states, generate_series(1, 5000) n where id = $1`,
    [stateId],
  );
  await pool.query('analyze state_versions, events, resources');
  const plans = await plansOfExport(stateId);
  expect(plans.map((plan) => plan['Temp Written Blocks'])).toEqual([0, 0, 0]);
  for (const plan of plans) {
    const sorted = nodesOf(plan).filter((node) => node['Node Type'] === 'Sort');
    for (const { Output = [] } of sorted) expect(Output.join()).not.toMatch(/json|raw_state|payload/);
  }
});

test('the longest raw state is known before it is read, the same before its length is on record and after', async () => {
  const { stateId } = await post(backend.database, caller, 'app', documents[0] ?? '');
  const { pool } = backend.database;
  await pool.query(
    `insert into state_versions (tenant_id, state_id, serial, raw_state, source)
     select tenant_id, state_id, 0, raw_state || jsonb_build_object('serial', 0, 'resources', '[]'::jsonb,
         'check_results', (select jsonb_agg(md5(k::text)) from generate_series(1, 20000) k)), source
     from state_versions where state_id = $1`,
    [stateId],
  );
  const { rows } = await pool.query(
    'select max(octet_length(raw_state::text)) as longest from state_versions where state_id = $1',
    [stateId],
  );
  const sources = async () =>
    inTransaction(backend.database, 'export', async (session) => {
      const state = (await findStatesById(session.db, caller, [stateId])).get(stateId);
      if (state === undefined) throw new Error(`There is no state ${stateId}.`);
      const { longestRawState, rawStateText } = await openExportSource(session, state, EXPORT_RECORD);
      return { longestRawState, rawStateText };
    });
  const expected = { longestRawState: rows[0].longest, rawStateText: 'jsonb' };
  expect(expected.longestRawState).toBeGreaterThan(600_000);
  expect(await sources()).toEqual(expected);
  await previewOf(stateId);
  expect(await sources()).toEqual(expected);
});

describe('a history that contradicts itself is not exported, and its preview says why', () => {
  let stateId: string;
  let foreignVersion: string;
  beforeEach(async () => {
    ({ stateId } = await post(backend.database, caller, 'app', documents[0] ?? ''));
    const foreign = await post(backend.database, caller, 'other', documents[1] ?? '');
    const { rows } = await backend.database.pool.query('select id from state_versions where state_id = $1', [
      foreign.stateId,
    ]);
    foreignVersion = rows[0].id;
  });

  const inconsistent = async (message: RegExp) => {
    await expect(archive(stateId, inDirectory('inconsistent.klstate'))).rejects.toThrow(message);
    await expect(archive(stateId, inDirectory('inconsistent.klstate'))).rejects.toBeInstanceOf(
      HistoryInconsistentError,
    );
  };

  test('a tag on a version of another state', async () => {
    await backend.database.pool.query(
      `insert into state_version_tags (tenant_id, state_id, state_version_id, tag) values ($1, $2, $3, 'stray')`,
      [caller.namespace.tenantId, stateId, foreignVersion],
    );
    await inconsistent(/"stray" points at a version of another state/);
    await expect(previewOf(stateId)).rejects.toBeInstanceOf(HistoryInconsistentError);
    expect((await runExport(backend, caller, 'app')).error).toMatchObject({
      code: 'HISTORY_INCONSISTENT',
      message: expect.stringContaining('stray'),
    });
  });

  test('a pointer at a version of another state, or at none while there are versions', async () => {
    await backend.database.pool.query('update states set current_version_id = $2 where id = $1', [
      stateId,
      foreignVersion,
    ]);
    await inconsistent(/current pointer/);
    await backend.database.pool.query('update states set current_version_id = null where id = $1', [stateId]);
    await inconsistent(/current pointer/);
  });

  test('an event of a version of another state', async () => {
    await backend.database.pool.query(
      `insert into events (tenant_id, state_id, state_version_id, kind) values ($1, $2, $3, 'state_write')`,
      [caller.namespace.tenantId, stateId, foreignVersion],
    );
    await inconsistent(/points at a version of another state/);
  });

  test('a tag under another tenant is not the state’s', async () => {
    const stranger = await createCaller(backend);
    await backend.database.pool.query(
      `insert into state_version_tags (tenant_id, state_id, state_version_id, tag)
       select $2, id, current_version_id, 'foreign' from states where id = $1`,
      [stateId, stranger.namespace.tenantId],
    );
    expect((await archive(stateId, inDirectory('foreign.klstate'))).counts.tags).toBe(0);
    expect((await previewOf(stateId))?.tagCount).toBe(0);
  });
});

test('a refusal while the raw states stream ends the export, and no connection is lost by it', async () => {
  const { stateId } = await post(backend.database, caller, 'app', documents[0] ?? '');
  await backend.database.pool.query(
    `insert into state_versions (tenant_id, state_id, serial, raw_state, source)
     select tenant_id, state_id, n, raw_state || jsonb_build_object('serial', n, 'resources', '[]'::jsonb,
         'check_results', (select jsonb_agg(md5(n || '.' || k)) from generate_series(1, 60000) k)), source
     from state_versions, generate_series(100, 104) n where state_id = $1`,
    [stateId],
  );
  const refusal = new Error('no such document');
  // More often than there are connections.
  for (let attempt = 0; attempt < 10; attempt++) {
    const refused = inTransaction(backend.database, 'export', async (session) => {
      const state = (await findStatesById(session.db, caller, [stateId])).get(stateId);
      if (state === undefined) throw new Error(`There is no state ${stateId}.`);
      const contents = await openExportSource(session, state, EXPORT_RECORD);
      return writeArchive(contents, inDirectory('refused.klstate'), {
        check: async (_, grown) => {
          for await (const length of grown) if (length > 0) throw refusal;
          throw new Error('the file was complete before it was refused');
        },
      });
    });
    await expect(refused).rejects.toBe(refusal);
  }
  expect((await archive(stateId, inDirectory('accepted.klstate'))).counts.versions).toBe(6);
});

test('a state without a version has nothing to export', async () => {
  const { rows } = await backend.database.pool.query(
    'insert into states (tenant_id, name) values ($1, $2) returning id',
    [caller.namespace.tenantId, `${caller.namespace.namePrefix}shell`],
  );
  await expect(archive(rows[0].id, inDirectory('shell.klstate'))).rejects.toBeInstanceOf(StateEmptyError);
  expect(await previewOf(rows[0].id)).toBeUndefined();
  expect((await runExport(backend, caller, 'shell')).error).toMatchObject({
    code: 'STATE_EMPTY',
    path: ['input', 'name'],
  });
});

describe('a preview', () => {
  test('says of a history what its archive says', async () => {
    const stateId = await postTerraformHistory(backend.database, caller, 'app');
    await annotate(backend.database, stateId);
    const preview = await previewOf(stateId);
    const path = inDirectory('previewed.klstate');
    await archive(stateId, path);
    const { manifest, rawBytes, historyDigest, counts } = await verifyArchive(path);
    const times = manifest.versions.map(({ createdAt }) => createdAt).sort();
    expect(preview).toEqual({
      lineage: manifest.state.lineage,
      currentSerial: manifest.state.currentSerial,
      currentVersionId: manifest.state.currentVersionId,
      firstSerial: 1n,
      lastSerial: 10n,
      versionCount: counts.versions,
      tagCount: counts.tags,
      eventCount: counts.events,
      resourceSpanCount: counts.resources,
      rawBytes,
      historyDigest,
      sources: ['apply'],
      terraformVersions: ['1.11.4'],
      firstCreatedAt: times[0],
      lastCreatedAt: times.at(-1),
    });
  });

  test.each(['an export', 'a preview'])(
    'after %s reads no raw state that was digested then',
    async (which) => {
      const { stateId } = await post(backend.database, caller, 'app', documents[0] ?? '');
      const read = () => (which === 'an export' ? runExport(backend, caller, 'app') : previewOf(stateId));
      await read();
      const known = await previewOf(stateId);
      // Versions never change in Kilolock: one that is changed by hand shows whether it is read again.
      await backend.database.pool.query(
        `update state_versions set raw_state = raw_state || '{"changed": true}' where state_id = $1`,
        [stateId],
      );
      expect(await previewOf(stateId)).toEqual(known);
    },
  );

  test('digests the versions that are new since', async () => {
    const { stateId } = await post(backend.database, caller, 'app', documents[0] ?? '');
    const before = await previewOf(stateId);
    await post(backend.database, caller, 'app', documents[1] ?? '');
    const after = await previewOf(stateId);
    expect(after?.versionCount).toBe(2);
    expect(after?.historyDigest).not.toBe(before?.historyDigest);
    expect(after?.historyDigest).toBe((await archive(stateId, inDirectory('new.klstate'))).historyDigest);
  });

  test('of many states at once is each one’s own', async () => {
    const { stateId: one } = await post(backend.database, caller, 'one', documents[0] ?? '');
    const { stateId: two } = await post(backend.database, caller, 'two', documents[1] ?? '');
    const apart = [await previewOf(one), await previewOf(two)];
    const together = await readManifestPreviews(backend.database, [two, one], new DigestBudget());
    expect([together.get(one), together.get(two)]).toEqual(apart);
    expect(apart[0]).not.toEqual(apart[1]);
  });

  test('an export puts right a digest on record that is not the raw state’s', async () => {
    const { stateId } = await post(backend.database, caller, 'app', documents[0] ?? '');
    const right = await previewOf(stateId);
    await backend.database.pool.query(
      `update state_archive.version_digest set sha256 = sha256('wrong')
       where state_version_id in (select id from state_versions where state_id = $1)`,
      [stateId],
    );
    expect(await previewOf(stateId)).not.toEqual(right);
    const exported = await runExport(backend, caller, 'app');
    expect(exported.archive?.historyDigest).toBe(right?.historyDigest);
    expect((await previewOf(stateId))?.historyDigest).toBe(right?.historyDigest);
  });
});
