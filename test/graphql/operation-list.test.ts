import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../support/service.ts';
import { createEnvironment, postHistory, scopeOf } from './support/states.ts';

interface Found {
  readonly stateArchiveOperations: {
    readonly nodes: readonly { readonly id: string; readonly name: string }[];
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
  };
}

const LIST = `query ($scope: StateScopeInput, $filter: StateArchiveOperationFilter, $first: Int, $after: String) {
  stateArchiveOperations(scope: $scope, filter: $filter, first: $first, after: $after) {
    nodes { id name kind status } pageInfo { hasNextPage endCursor }
  }
}`;
const IMPORT = `mutation ($file: Upload!, $name: String!, $onConflict: StateArchiveConflictPolicy!, $dryRun: Boolean!) {
  importStateArchive(input: { file: $file, name: $name, onConflict: $onConflict, dryRun: $dryRun, allowSharedLineage: true }) {
    operation { id status } userErrors { code message }
  }
}`;

const HOME = { workspace: 'ws_list', environment: 'env_list' };
const OTHER = { workspace: 'ws_list', environment: 'env_list2' };

let service: TestService;
/** Ids of what was done, by what it was. */
const done: Record<'export' | 'dryRun' | 'copy' | 'failed' | 'bobs', string> = {
  export: '',
  dryRun: '',
  copy: '',
  failed: '',
  bobs: '',
};
let betweenThem: string;

beforeAll(async () => {
  service = await startTestService();
  for (const { workspace, environment } of [HOME, OTHER]) {
    await createEnvironment(service.database, workspace, environment);
  }
  // Long enough for a fault in its middle to be met only after its manifest.
  const noise = randomBytes(300_000).toString('base64');
  await postHistory(service.database, HOME, 'prod/network', [{ resources: { noise } }]);
  await postHistory(service.database, HOME, 'prod/bobs', [{}]);
  const archive = await exportOf('prod/network', {});
  done.export = archive.id;
  const file = new Uint8Array(await (await fetch(archive.url)).arrayBuffer());
  const { rows } = await service.database.pool.query<{ now: string }>(
    `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
  );
  betweenThem = rows[0]?.now ?? '';
  done.dryRun = await importOf(file, { name: 'new/name', onConflict: 'REFUSE', dryRun: true });
  done.copy = await importOf(file, { name: 'prod/network', onConflict: 'ARCHIVED_COPY', dryRun: false });
  const damaged = file.map((byte, index) => (index === file.length >> 1 ? byte ^ 1 : byte));
  done.failed = await importOf(damaged, {
    name: 'broken/name',
    onConflict: 'REFUSE',
    dryRun: false,
  });
  done.bobs = (await exportOf('prod/bobs', { subject: 'bob@test', name: 'Bob' })).id;
});
afterAll(() => service.stop());

async function exportOf(name: string, claims: object): Promise<{ id: string; url: string }> {
  const { data } = await service.ask<{
    exportStateArchive: { operation: { id: string; archive: { downloadUrl: string } } };
  }>(
    'mutation ($name: String!) { exportStateArchive(input: { name: $name }) { operation { id archive { downloadUrl } } } }',
    { variables: { name }, token: await service.token({ ...HOME, ...claims }) },
  );
  const { operation } = data.exportStateArchive;
  return { id: operation.id, url: operation.archive.downloadUrl };
}

async function importOf(bytes: Uint8Array<ArrayBuffer>, variables: object): Promise<string> {
  const { data } = await service.ask<{ importStateArchive: { operation: { id: string } } }>(IMPORT, {
    variables: { ...variables },
    file: { bytes },
    token: await service.token(HOME),
  });
  return data.importStateArchive.operation.id;
}

async function list(variables: object, claims: object = {}) {
  return service.ask<Found>(LIST, {
    variables: { first: 20, ...variables },
    token: await service.token({ ...HOME, ...claims }),
  });
}

async function namesOf(variables: object, claims: object = {}): Promise<string[]> {
  const { data } = await list(variables, claims);
  const names = new Map(Object.entries(done).map(([name, id]) => [id, name]));
  return data.stateArchiveOperations.nodes.map(({ id }) => names.get(id) ?? id);
}

describe('the list of operations', () => {
  test('finds a dry run, an archived copy and a failed import, which no active state leads to', async () => {
    expect(await namesOf({})).toEqual(['bobs', 'failed', 'copy', 'dryRun', 'export']);
  });

  test.each<[what: string, filter: object, expected: string[]]>([
    ['kind', { kind: 'EXPORT' }, ['bobs', 'export']],
    ['status', { status: 'FAILED' }, ['failed']],
    ['several statuses', { status: ['FAILED', 'RUNNING'] }, ['failed']],
    ['no status', { status: [] }, []],
    ['name prefix', { namePrefix: 'new/' }, ['dryRun']],
    ['name prefix, literally', { namePrefix: 'prod/_' }, []],
    ['a prefix that no text can hold', { namePrefix: 'prod\0' }, []],
    ['actor', { actor: 'Bob' }, ['bobs']],
    ['an actor that no text can hold', { actor: 'Bob\ud800' }, []],
    ['several at once', { kind: 'IMPORT', status: 'SUCCEEDED', namePrefix: 'prod/' }, ['copy']],
    ['nothing', {}, ['bobs', 'failed', 'copy', 'dryRun', 'export']],
  ])('is narrowed by %s', async (_what, filter, expected) => {
    expect(await namesOf({ filter })).toEqual(expected);
  });

  test('is narrowed by time, to the microsecond, with fewer digits too', async () => {
    expect(await namesOf({ filter: { since: betweenThem } })).toEqual(['bobs', 'failed', 'copy', 'dryRun']);
    expect(await namesOf({ filter: { since: '2020-01-01T00:00:00Z' } })).toHaveLength(5);
    for (const since of [
      '2026-02-30T00:00:00Z',
      '2026-01-01',
      '0000-01-01T00:00:00Z',
      '2026-01-01T00:00:00.1234567Z',
    ]) {
      expect((await list({ filter: { since } })).denials).toEqual([': BAD_USER_INPUT']);
    }
  });

  test('shows an archive that is past its time by the status it is told with', async () => {
    const { pool } = service.database;
    await pool.query('update state_archive.operation set expires_at = now() where id = $1', [done.bobs]);
    expect(await namesOf({ filter: { status: 'EXPIRED' } })).toEqual(['bobs']);
    expect(await namesOf({ filter: { kind: 'EXPORT', status: 'SUCCEEDED' } })).toEqual(['export']);
  });

  test('comes page by page, each operation once', async () => {
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const { data }: { data: Found } = await list({ first: 2, after });
      const { nodes, pageInfo } = data.stateArchiveOperations;
      seen.push(...nodes.map(({ id }) => id));
      after = pageInfo.hasNextPage ? pageInfo.endCursor : null;
    } while (after !== null);
    expect(seen).toEqual([done.bobs, done.failed, done.copy, done.dryRun, done.export]);
  });

  test('shows what an operation shown alone would show: other callers, environments and patterns', async () => {
    expect(await namesOf({}, OTHER)).toEqual([]);
    expect(await namesOf({ scope: scopeOf(HOME) }, OTHER)).toEqual([]);
    expect(await namesOf({ scope: scopeOf({ ...HOME, environment: 'env_absent' }) })).toEqual([]);
    expect(await namesOf({}, { workspace: undefined, environment: undefined })).toEqual([]);
    expect(await namesOf({ first: 1 }, { states: ['new/*'] })).toEqual(['dryRun']);
    expect(await namesOf({}, { states: ['prod/network'] })).toEqual(['copy', 'export']);
    expect(await namesOf({}, { scopes: ['state.export'], subject: 'bob@test' })).toEqual(['bobs']);
    expect((await list({}, { scopes: ['state.raw.read'] })).denials).toEqual([
      'stateArchiveOperations: FORBIDDEN',
    ]);
  });
});
