import { createHash, generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse, print } from 'graphql';
import { enforceAuthorization } from '../../src/auth/directives.ts';
import { fieldRequirements } from '../../src/auth/field-requirements.ts';
import { SCOPES } from '../../src/auth/principal.ts';
import { PUBLIC_COORDINATES } from '../../src/auth/public-coordinates.ts';
import { type AccessPath, accessPaths, type Named } from '../auth/support/access-paths.ts';
import { type GraphqlAnswer, startTestService, type TestService } from '../support/service.ts';
import { createEnvironment, postHistory, scopeOf, tagVersion } from './support/states.ts';

const PROJECT = resolve(import.meta.dirname, '../..');
const SDL = parse(readFileSync(resolve(PROJECT, 'schema.graphql'), 'utf8'));

/** Guarded as the service guards it, to be told which fields are; reference resolvers stand in, for the guard wants them. */
const schema = enforceAuthorization(
  buildSubgraphSchema([
    {
      typeDefs: SDL,
      resolvers: Object.fromEntries(
        ['StateArchive', 'State', 'StateArchiveOperation'].map((name) => [
          name,
          { __resolveReference: () => null },
        ]),
      ),
    },
  ]),
  { publicCoordinates: PUBLIC_COORDINATES },
);
/** What is made by being asked for, and of no row. */
const OF_NO_ROW = /^(?:StateArchiveUpload(?:Header)?\.|StateArchiveCaller\.|Query\.stateArchiveCaller$)/;
const COORDINATES = [...fieldRequirements(schema)]
  .filter(([coordinate, requirement]) => requirement !== null && !OF_NO_ROW.test(coordinate))
  .map(([coordinate]) => coordinate);

/** Names the target in variables, so that what is asked is the same text whatever it is. */
const NAMED: Named = {
  texts: {
    'Query.stateArchive(name)': '$name',
    'Query.stateArchive(scope)': '$scope',
    'Query.stateArchives(filter)': '{ namePrefix: $name }',
    'Query.stateArchives(scope)': '$scope',
    'Query.stateArchiveOperations(filter)': '{ namePrefix: $name }',
    'Query.stateArchiveOperations(scope)': '$scope',
    'Query.stateArchiveOperation(id)': '$operationId',
    'Query.stateArchiveOperation(scope)': '$scope',
    'StateArchive.version(serial)': '"1"',
    'Mutation.cancelStateArchiveOperation(input)': '{ id: $operationId, scope: $scope }',
    'Mutation.setStateArchiveLegalHold(input)': '{ id: $operationId, legalHold: false, scope: $scope }',
    'Mutation.exportStateArchive(input)': '{ name: $name, scope: $scope }',
    'Mutation.importStateArchive(input)': '{ file: $file, name: $name, scope: $scope, dryRun: true }',
    'Mutation.importStateSnapshot(input)': '{ name: $name, scope: $scope, document: "This is not a state." }',
    'Mutation.stageStateArchiveUpload(input)':
      '{ byteLength: "1", sha256: "0000000000000000000000000000000000000000000000000000000000000000", scope: $scope }',
    'StateArchive by id': '$archiveById',
    'StateArchive by workspaceId, environmentId, name': '$archiveByName',
    'State by id': '$stateById',
    'StateArchiveOperation by id': '$operationById',
  },
  variables: {
    file: 'Upload!',
    name: 'String!',
    scope: 'StateScopeInput!',
    operationId: 'ID!',
    archiveById: '_Any!',
    archiveByName: '_Any!',
    stateById: '_Any!',
    operationById: '_Any!',
  },
  // An export has neither a report nor a mapping; the import that made the state has both.
  deadEnds: new Set(['StateArchiveStatus.lastExport']),
};

function pathsTo(coordinate: string, besides: readonly string[] = []): AccessPath[] {
  const [typeName = '', fieldName = ''] = coordinate.split('.');
  // Only an operation that failed has an error, and the import that made a state is none that did.
  const deadEnds =
    typeName === 'StateArchiveUserError'
      ? new Set([...NAMED.deadEnds, 'StateArchiveStatus.lastImport'])
      : NAMED.deadEnds;
  return accessPaths(schema, SDL, typeName, fieldName, { ...NAMED, deadEnds }, besides);
}

/** What one can name: what is there, or what is not. */
interface Target {
  readonly name: string;
  readonly stateId: string;
  readonly operationId: string;
  readonly failedOperationId: string;
  readonly workspace: string;
  readonly environment: string;
}

const HOME = { workspace: 'ws_rows', environment: 'env_rows' };
const SECOND = { workspace: 'ws_rows', environment: 'env_rows_second' };
const OTHER = { workspace: 'ws_rows_other', environment: 'env_rows_other' };
const NOWHERE = { workspace: 'ws_rows_absent', environment: 'env_rows_absent' };
const ABSENT = {
  name: 'prod/absent',
  stateId: '00000000-0000-4000-8000-000000000001',
  operationId: '00000000-0000-4000-8000-000000000002',
  failedOperationId: '00000000-0000-4000-8000-000000000003',
};

/** Everybody has every scope but support's, which is made to reach into other environments. */
const SCOPES_OF_ALL = SCOPES.filter((scope) => scope !== 'state.support');
const STRANGERS = [
  { name: 'other tenant', claims: OTHER, absent: { ...ABSENT, ...NOWHERE } },
  { name: 'other environment', claims: SECOND, absent: { ...ABSENT, ...NOWHERE } },
  {
    name: 'outside pattern',
    claims: { ...HOME, states: ['own/*', 'prod/net'] },
    absent: { ...ABSENT, ...HOME },
  },
] as const;

let service: TestService;
let target: Target;
/** What no answer to a stranger may hold. */
let secrets: readonly string[];
const tokens = new Map<string, string>();

beforeAll(async () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  service = await startTestService({
    MAX_UPLOADS_PER_PRINCIPAL: '1000',
    ARCHIVE_SIGNING_KEY: String(privateKey.export({ format: 'pem', type: 'pkcs8' })),
  });
  tokens.set('right', await service.token({ ...HOME, scopes: SCOPES_OF_ALL }));
  for (const { name, claims } of STRANGERS) {
    tokens.set(name, await service.token({ ...claims, scopes: SCOPES_OF_ALL }));
  }
  for (const { workspace, environment } of [HOME, SECOND, OTHER]) {
    await createEnvironment(service.database, workspace, environment);
    await postHistory(service.database, { workspace, environment }, 'own/state', [{}]);
  }
  const source = await postHistory(service.database, HOME, 'source/network', [
    { outputs: { secret: 'hunter2' }, resources: { a: '1' } },
    { outputs: { secret: 'hunter3' }, resources: { a: '2' } },
  ]);
  await tagVersion(service.database, source.stateId, 1n, 'released');
  await restore(await archiveOf('source/network'), 'prod/network');
  await archiveOf('prod/network');
  target = await findTarget();
  secrets = await secretsOf(target);
});
afterAll(() => service.stop());

async function askAs<Data = unknown>(
  who: string,
  query: string,
  variables: Readonly<Record<string, unknown>>,
  bytes?: Uint8Array<ArrayBuffer>,
): Promise<GraphqlAnswer<Data>> {
  return service.ask<Data>(query, {
    token: tokens.get(who) ?? null,
    variables,
    ...(bytes && { file: { bytes } }),
  });
}

async function archiveOf(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const { data } = await askAs<{
    exportStateArchive: { operation: { archive: { downloadUrl: string } } };
  }>(
    'right',
    'mutation ($name: String!) { exportStateArchive(input: { name: $name }) { operation { archive { downloadUrl } } } }',
    { name },
  );
  const response = await fetch(data.exportStateArchive.operation.archive.downloadUrl);
  return new Uint8Array(await response.arrayBuffer());
}

async function restore(archive: Uint8Array<ArrayBuffer>, name: string): Promise<void> {
  const { data } = await askAs(
    'right',
    `mutation ($file: Upload!, $name: String!) {
      importStateArchive(input: { file: $file, name: $name, allowSharedLineage: true }) { operation { status } userErrors { code } }
    }`,
    { name },
    archive,
  );
  expect(data).toEqual({ importStateArchive: { operation: { status: 'SUCCEEDED' }, userErrors: [] } });
}

/** The state, its import, and an export of it that failed. */
async function findTarget(): Promise<Target> {
  const name = 'prod/network';
  const { data } = await askAs<{ stateArchive: { id: string; status: { lastImport: { id: string } } } }>(
    'right',
    'query ($name: String!) { stateArchive(name: $name) { id status { lastImport { id } } } }',
    { name },
  );
  const { id: stateId, status } = data.stateArchive;
  const { rows } = await service.database.pool.query<{ id: string }>(
    `insert into state_archive.operation
       (kind, status, tenant_id, workspace_id, environment_id, state_name, state_label, state_id, actor, subject,
        started_at, finished_at, error_code, error_message, error_path)
     select kind, 'FAILED', tenant_id, workspace_id, environment_id, state_name, state_label, state_id, actor, subject,
        started_at, finished_at, 'HISTORY_INCONSISTENT', 'The history contradicts itself.', '{name}'
     from state_archive.operation where state_id = $1 and kind = 'EXPORT' returning id`,
    [stateId],
  );
  const failedOperationId = rows[0]?.id ?? '';
  return { name, stateId, operationId: status.lastImport.id, failedOperationId, ...HOME };
}

async function secretsOf({ name, stateId, operationId, failedOperationId }: Target): Promise<string[]> {
  const { rows: states } = await service.database.pool.query<{ lineage: string }>(
    'select lineage from states where id = $1',
    [stateId],
  );
  const { rows: versions } = await service.database.pool.query<{ id: string; raw: string }>(
    'select id, raw_state::text as raw from state_versions where state_id = $1',
    [stateId],
  );
  const { rows: operations } = await service.database.pool.query<{ digest: string }>(
    `select encode(unnest(array[archive_sha256, archive_history_digest]), 'hex') as digest
     from state_archive.operation where state_id = $1`,
    [stateId],
  );
  return [
    ...[name, stateId, operationId, failedOperationId, 'hunter2', 'hunter3', 'released'],
    ...states.map(({ lineage }) => lineage),
    ...versions.flatMap(({ id, raw }) => [id, createHash('sha256').update(raw).digest('hex')]),
    ...operations.flatMap(({ digest }) => digest ?? []),
  ];
}

/** The variables that name a target, for a field of this type. */
function variablesFor(named: Target, typeName: string): Record<string, unknown> {
  const { name, stateId } = named;
  const operationId = typeName === 'StateArchiveUserError' ? named.failedOperationId : named.operationId;
  return {
    name,
    scope: scopeOf(named),
    operationId,
    archiveById: { __typename: 'StateArchive', id: stateId },
    archiveByName: { __typename: 'StateArchive', ...scopeOf(named), name },
    stateById: { __typename: 'State', id: stateId },
    operationById: { __typename: 'StateArchiveOperation', id: operationId },
  };
}

function take(who: string, path: AccessPath, named: Target): Promise<GraphqlAnswer<unknown>> {
  const [typeName = ''] = path.steps.at(-1)?.coordinate.split('.') ?? [];
  const text = print(path.document);
  const file = text.includes('$file') ? new TextEncoder().encode('This is not an archive.') : undefined;
  const variables = Object.entries(variablesFor(named, typeName)).filter(([name]) =>
    text.includes(`$${name}:`),
  );
  return askAs(who, text, Object.fromEntries(variables), file);
}

/** Whether the answer holds the field's object, and of a field of a root its value. Each object above it has one field. */
function reaches({ data }: GraphqlAnswer<unknown>, { steps }: AccessPath): boolean {
  const fields = steps.filter(({ coordinate }) => coordinate.includes('.'));
  const isOfEntity = fields.length < steps.length;
  const isOfRoot = /^(Query|Mutation)\./.test(fields.at(-1)?.coordinate ?? '');
  let found: unknown[] = [data];
  const depth = fields.length + (isOfEntity ? 1 : 0) - (isOfRoot ? 0 : 1);
  for (let level = 0; level < depth; level += 1) {
    found = found
      .flatMap((value) => Object.values(value as object))
      .flat()
      .filter((value) => value !== null);
  }
  return found.length > 0;
}

/** What an answer to a stranger gives away. */
function secretsIn(text: string): string[] {
  return secrets.filter((secret) => text.includes(secret));
}

/** The fields that are asked for together: those of one type, and each of a root by itself. */
const TOGETHER = [
  ...Map.groupBy(COORDINATES, (coordinate) =>
    /^(Query|Mutation)\./.test(coordinate) ? coordinate : coordinate.split('.')[0],
  ).values(),
];

interface Measured {
  readonly paths: number;
  /** In how many of the paths each caller was given something. */
  readonly reached: Readonly<Record<string, number>>;
  /** What went otherwise than it should. */
  readonly problems: readonly unknown[];
}

/** What `measure` found, to be printed. */
const measured = new Map<string, Measured>();

async function measure(coordinates: readonly [string, ...string[]]): Promise<Measured> {
  const [first, ...others] = coordinates;
  const paths = pathsTo(
    first,
    others.map((coordinate) => coordinate.split('.')[1] ?? ''),
  );
  const reached: Record<string, number> = {};
  const problems: unknown[] = [];
  const count = (who: string, isReached: boolean) => {
    reached[who] = (reached[who] ?? 0) + (isReached ? 1 : 0);
  };
  for (const path of paths) {
    const answer = await take('right', path, target);
    const isFound = answer.errors.length === 0 && reaches(answer, path);
    count('right', isFound);
    if (!isFound) problems.push(['right', path.name, answer.text]);
    await Promise.all(
      STRANGERS.map(async ({ name, absent }) => {
        const [there, nothing] = [await take(name, path, target), await take(name, path, absent)];
        const isGiven =
          there.status !== nothing.status || there.text !== nothing.text || secretsIn(there.text).length > 0;
        count(name, isGiven);
        if (isGiven) problems.push([name, path.name, there.text, nothing.text]);
      }),
    );
  }
  const result = { paths: paths.length, reached, problems };
  for (const coordinate of coordinates) measured.set(coordinate, result);
  return result;
}

describe('the fields of a row', () => {
  test.each(TOGETHER.map((coordinates) => [coordinates.join(', '), coordinates] as const))(
    '%s are reached by the row’s own environment, and are to strangers what those of a row that does not exist are, by every path',
    async (_names, [first = '', ...others]) => {
      const { paths, reached, problems } = await measure([first, ...others]);
      expect(problems).toEqual([]);
      expect(paths).toBeGreaterThanOrEqual(3);
      expect(reached).toEqual({
        right: paths,
        'other tenant': 0,
        'other environment': 0,
        'outside pattern': 0,
      });
    },
  );
});

test('each reference of a batch is found or not by itself, beside what is the caller’s own', async () => {
  const query = `query ($ownById: _Any!, $archiveById: _Any!, $archiveByName: _Any!, $stateById: _Any!, $operationById: _Any!) {
    _entities(representations: [$archiveById, $ownById, $archiveByName, $stateById, $operationById]) {
      ... on StateArchive {
        id name lineage manifest { historyDigest } tags { name }
        versions(first: 2) { nodes { id sha256 rawState } } operations(first: 50) { nodes { id archive { sha256 } } }
      }
      ... on State { archive { id name } }
      ... on StateArchiveOperation { id archive { sha256 downloadUrl } }
    }
  }`;
  const askBatch = async (who: string, named: Target) => {
    const own = await askAs<{ stateArchive: { id: string } | null }>(
      who,
      '{ stateArchive(name: "own/state") { id } }',
      {},
    );
    const ownById = { __typename: 'StateArchive', id: own.data.stateArchive?.id };
    const { archiveById, archiveByName, stateById, operationById } = variablesFor(named, 'StateArchive');
    const representations = { ownById, archiveById, archiveByName, stateById, operationById };
    return askAs<{ _entities: unknown[] }>(who, query, representations);
  };
  const { data, errors, text } = await askBatch('right', target);
  expect([errors, data._entities.includes(null)]).toEqual([[], false]);
  expect(secretsIn(text)).toEqual(secrets);
  for (const { name, absent } of STRANGERS) {
    const answer = await askBatch(name, target);
    expect([name, answer.text]).toEqual([name, (await askBatch(name, absent)).text]);
    expect(answer.data._entities[1]).toMatchObject({ name: 'own/state' });
    expect([name, secretsIn(answer.text)]).toEqual([name, []]);
  }
});

test('the row matrix is printed in docs/authorization.md (UPDATE_DOCS=1 rewrites it)', async () => {
  const columns = ['right', ...STRANGERS.map(({ name }) => name)];
  const rows: string[] = [];
  for (const coordinate of COORDINATES) {
    const { paths, reached } = measured.get(coordinate) ?? (await measure([coordinate]));
    const cells = columns.map((column) => {
      const count = reached[column] ?? 0;
      return count === 0 ? 'nothing' : count === paths ? 'yes' : `${count} of ${paths}`;
    });
    rows.push(`| \`${coordinate}\` | ${cells.join(' | ')} |`);
  }
  const table = [`| Field | ${columns.join(' | ')} |`, `|${' --- |'.repeat(columns.length + 1)}`, ...rows];
  const file = resolve(PROJECT, 'docs/authorization.md');
  const text = await readFile(file, 'utf8');
  const current = text.replace(
    /(<!-- row matrix: .*? -->\n).*?(\n<!-- end of row matrix -->)/s,
    (_all, start: string, end: string) => `${start}\n${table.join('\n')}\n${end}`,
  );
  if (process.env.UPDATE_DOCS === '1') await writeFile(file, current);
  else expect(text).toBe(current);
  expect(current).toContain('| `StateArchiveVersion.rawState` | yes | nothing | nothing | nothing |');
});
