import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';
import { loadSampleHistory, SAMPLE_LABEL } from '../../src/development/sample-history.ts';
import { noFilesBelow } from '../support/files-below.ts';
import { type GraphqlAnswer, startTestService, type TestService } from '../support/service.ts';
import { butFailures } from '../support/state-rows.ts';
import { createEnvironment, documentOf, postHistory, scopeOf } from './support/states.ts';

interface UserError {
  readonly code: string;
  readonly message: string;
  readonly path: readonly string[] | null;
}

interface Operation {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly actor: string;
  readonly createdAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly expiresAt: string | null;
  readonly progress: Record<'versionsDone' | 'versionsTotal' | 'bytesDone' | 'bytesTotal', unknown>;
  readonly stateArchive: { readonly id: string; readonly name: string } | null;
  readonly archive: {
    readonly sha256: string;
    readonly sizeBytes: string;
    readonly historyDigest: string;
    readonly fileName: string;
    readonly downloadUrl: string | null;
  } | null;
  readonly report: (Record<string, unknown> & { readonly warnings: readonly unknown[] }) | null;
  readonly error: UserError | null;
}

interface Mapping {
  readonly nodes: readonly {
    readonly serial: string;
    readonly sourceVersionId: string;
    readonly versionId: string;
  }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string };
}

interface Payload {
  readonly operation: Operation | null;
  readonly userErrors: readonly UserError[];
}

const OPERATION = `
  id kind status actor createdAt startedAt finishedAt expiresAt
  progress { versionsDone versionsTotal bytesDone bytesTotal }
  stateArchive { id name }
  archive { sha256 sizeBytes historyDigest fileName downloadUrl }
  report {
    dryRun name sourceName sourceStateId versionCount tagCount eventCount resourceSpanCount outputCount rawBytes
    warnings { code message serial }
  }
  error { code message path }`;
const PAYLOAD = `operation { ${OPERATION} } userErrors { code message path }`;
const EXPORT = `mutation ($input: ExportStateArchiveInput!) { exportStateArchive(input: $input) { ${PAYLOAD} } }`;
const IMPORT = `mutation (
  $file: Upload!, $name: String, $scope: StateScopeInput, $allowSharedLineage: Boolean! = true, $dryRun: Boolean! = false,
  $expectedSha256: Sha256, $waitSeconds: Int = 10, $idempotencyKey: String
) {
  importStateArchive(input: {
    file: $file, name: $name, scope: $scope, allowSharedLineage: $allowSharedLineage, dryRun: $dryRun,
    expectedSha256: $expectedSha256, waitSeconds: $waitSeconds, idempotencyKey: $idempotencyKey
  }) { ${PAYLOAD} }
}`;

type Bytes = Uint8Array<ArrayBuffer>;

let service: TestService;
/** The archive of the sample history, and the operation that made it. */
let archive: Bytes;
let exported: Operation;

beforeAll(async () => {
  service = await startTestService({ MAX_INLINE_UPLOAD_BYTES: String(1024 * 1024) });
  await loadSampleHistory(service.database);
  exported = await exportState(SAMPLE_LABEL);
  archive = await download(exported);
});

afterAll(() => service.stop());

afterEach(() =>
  noFilesBelow(...['store/uploads', 'scratch'].map((directory) => join(service.dataDirectory, directory))),
);

async function startExport(input: object, token?: string) {
  const answer = await service.ask<{ exportStateArchive: Payload }>(EXPORT, {
    variables: { input },
    ...(token !== undefined && { token }),
  });
  return { ...answer, payload: answer.data?.exportStateArchive };
}

async function exportState(name: string): Promise<Operation> {
  const { payload } = await startExport({ name });
  expect(payload?.userErrors).toEqual([]);
  if (!payload?.operation) throw new Error('There is no operation.');
  return payload.operation;
}

async function download({ archive: file }: Operation): Promise<Bytes> {
  const response = await fetch(file?.downloadUrl ?? '');
  expect(response.status).toBe(200);
  return new Uint8Array(await response.arrayBuffer());
}

async function importArchive(bytes: Bytes, variables: object, token?: string) {
  const answer = await service.ask<{ importStateArchive: Payload }>(IMPORT, {
    variables: { ...variables },
    file: { bytes, name: 'in.klstate' },
    ...(token !== undefined && { token }),
  });
  return { ...answer, payload: answer.data?.importStateArchive };
}

async function operationById(id: string, selection: string): Promise<Record<string, unknown>> {
  const { data, errors } = await service.ask<{ stateArchiveOperation: Record<string, unknown> }>(
    `query ($id: ID!) { stateArchiveOperation(id: $id) { ${selection} } }`,
    { variables: { id } },
  );
  expect(errors).toEqual([]);
  return data.stateArchiveOperation;
}

/** The rows of every table an import may write to. */
async function rowCounts(): Promise<Record<string, string>> {
  const tables = ['states', 'state_versions', 'state_version_tags', 'resources', 'outputs', 'events'];
  const counts = tables.map(
    (table) => `(select count(*) from ${butFailures(`public.${table}`)} t) as ${table}`,
  );
  const { rows } = await service.database.pool.query(`select ${counts.join(', ')}`);
  return rows[0];
}

describe('export, download, import, export', () => {
  test('gives the same history digest everywhere, and every member agrees with the preview', async () => {
    const { data } = await service.ask<{ stateArchive: { id: string; manifest: Record<string, unknown> } }>(
      `query ($name: String!) { stateArchive(name: $name) { id manifest {
        historyDigest versionCount tagCount eventCount resourceSpanCount rawBytes lineage currentSerial
      } } }`,
      { variables: { name: SAMPLE_LABEL } },
    );
    const { id: sourceId, manifest } = data.stateArchive;
    expect(exported).toMatchObject({
      kind: 'EXPORT',
      status: 'SUCCEEDED',
      actor: 'alice@test',
      stateArchive: { id: sourceId, name: SAMPLE_LABEL },
      archive: { historyDigest: manifest.historyDigest, fileName: 'demo-network-10.klstate' },
      progress: {
        versionsDone: 10,
        versionsTotal: 10,
        bytesDone: manifest.rawBytes,
        bytesTotal: manifest.rawBytes,
      },
      report: null,
      error: null,
    });

    const path = join(service.dataDirectory, 'downloaded.klstate');
    await writeFile(path, archive);
    const verified = await verifyArchive(path);
    expect(verified).toMatchObject({
      sha256: exported.archive?.sha256,
      historyDigest: manifest.historyDigest,
      rawBytes: BigInt(String(manifest.rawBytes)),
      counts: {
        versions: manifest.versionCount,
        tags: manifest.tagCount,
        events: manifest.eventCount,
        resources: manifest.resourceSpanCount,
      },
    });
    expect(String(archive.byteLength)).toBe(exported.archive?.sizeBytes);

    const { payload } = await importArchive(archive, { name: 'restored/network' });
    expect(payload?.userErrors).toEqual([]);
    const imported = payload?.operation;
    expect(imported).toMatchObject({
      kind: 'IMPORT',
      status: 'SUCCEEDED',
      expiresAt: null,
      stateArchive: { name: 'restored/network' },
      archive: {
        sha256: exported.archive?.sha256,
        historyDigest: manifest.historyDigest,
        fileName: 'in.klstate',
        downloadUrl: null,
      },
      report: {
        dryRun: false,
        name: 'restored/network',
        sourceName: SAMPLE_LABEL,
        sourceStateId: sourceId,
        versionCount: manifest.versionCount,
        tagCount: manifest.tagCount,
        eventCount: manifest.eventCount,
        resourceSpanCount: manifest.resourceSpanCount,
        rawBytes: manifest.rawBytes,
      },
    });
    expect(imported?.stateArchive?.id).not.toBe(sourceId);

    const again = await exportState('restored/network');
    expect(again.archive?.historyDigest).toBe(manifest.historyDigest);
    expect(again.archive?.sha256).not.toBe(exported.archive?.sha256);
  });

  test('leaves the last export and the import that made the state in its status and its list', async () => {
    await importArchive(archive, { name: 'restored/listed' });
    const first = await exportState('restored/listed');
    const second = await exportState('restored/listed');
    const { data } = await service.ask<{
      stateArchive: { status: object; operations: { nodes: { id: string; kind: string }[] } };
    }>(
      `{ stateArchive(name: "restored/listed") {
        status { lastExport { id } lastImport { kind report { sourceName } } }
        operations(first: 2) { nodes { id kind } pageInfo { hasNextPage endCursor } }
      } }`,
    );
    const { status, operations } = data.stateArchive;
    expect(status).toEqual({
      lastExport: { id: second.id },
      lastImport: { kind: 'IMPORT', report: { sourceName: SAMPLE_LABEL } },
    });
    expect(operations).toEqual({
      nodes: [
        { id: second.id, kind: 'EXPORT' },
        { id: first.id, kind: 'EXPORT' },
      ],
      pageInfo: { hasNextPage: true, endCursor: expect.any(String) },
    });
    const { endCursor } = (operations as unknown as { pageInfo: { endCursor: string } }).pageInfo;
    const rest = await service.ask(
      `query ($after: String) { stateArchive(name: "restored/listed") {
        operations(after: $after) { nodes { kind } pageInfo { hasNextPage hasPreviousPage } }
      } }`,
      { variables: { after: endCursor } },
    );
    expect(rest.data).toEqual({
      stateArchive: {
        operations: {
          nodes: [{ kind: 'IMPORT' }],
          pageInfo: { hasNextPage: false, hasPreviousPage: true },
        },
      },
    });
  });

  test('maps every version to the one it became, page by page', async () => {
    const { payload } = await importArchive(archive, { name: 'restored/mapped' });
    const mapped: Mapping['nodes'][number][] = [];
    let after: string | null = null;
    do {
      const answer: GraphqlAnswer<{ stateArchiveOperation: { versionMapping: Mapping } }> = await service.ask(
        `query ($id: ID!, $after: String) { stateArchiveOperation(id: $id) { versionMapping(first: 4, after: $after) {
          nodes { serial sourceVersionId versionId } pageInfo { hasNextPage endCursor }
        } } }`,
        { variables: { id: payload?.operation?.id, after } },
      );
      const { nodes, pageInfo }: Mapping = answer.data.stateArchiveOperation.versionMapping;
      mapped.push(...nodes);
      after = pageInfo.hasNextPage ? pageInfo.endCursor : null;
    } while (after !== null);

    const idsOf = async (name: string) => {
      const { data } = await service.ask<{
        stateArchive: { versions: { nodes: { id: string; serial: string }[] } };
      }>(
        'query ($name: String!) { stateArchive(name: $name) { versions(first: 100) { nodes { id serial } } } }',
        { variables: { name } },
      );
      return data.stateArchive.versions.nodes.reverse();
    };
    const source = await idsOf(SAMPLE_LABEL);
    const destination = await idsOf('restored/mapped');
    expect(mapped).toEqual(
      source.map(({ id, serial }, index) => ({
        serial,
        sourceVersionId: id,
        versionId: destination[index]?.id,
      })),
    );
  });

  test.each(['0', '1001'])('bounds a page of the mapping: first %s is refused', async (first) => {
    const { denials } = await service.ask(
      `{ stateArchiveOperation(id: "${exported.id}") { versionMapping(first: ${first}) { nodes { serial } } } }`,
    );
    expect(denials).toEqual(['stateArchiveOperation.versionMapping: BAD_USER_INPUT']);
  });

  test('an operation without a version mapping says so', async () => {
    const dryRun = await importArchive(archive, { name: 'restored/dry', dryRun: true });
    for (const id of [exported.id, dryRun.payload?.operation?.id ?? '']) {
      expect(await operationById(id, 'versionMapping { nodes { serial } }')).toEqual({
        versionMapping: null,
      });
    }
  });
});

describe('an import', () => {
  /** Sends an import that is refused or fails, and sees that it wrote nothing. */
  async function refused(bytes: Bytes, variables: object): Promise<Payload> {
    const before = await rowCounts();
    const { payload, errors } = await importArchive(bytes, variables);
    expect(errors).toEqual([]);
    expect(await rowCounts()).toEqual(before);
    if (payload === undefined) throw new Error('There is no payload.');
    return payload;
  }

  test('onto a name that is taken is refused, whoever took it', async () => {
    const { operation, userErrors } = await refused(archive, {});
    expect(operation).toBeNull();
    expect(userErrors).toEqual([
      {
        code: 'STATE_ALREADY_EXISTS',
        message: expect.stringContaining(`"${SAMPLE_LABEL}"`),
        path: ['input', 'name'],
      },
    ]);
    // Not a row says so: the log does.
    const noted = service.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'refused');
    expect(noted.at(-1)).toMatchObject({
      mutation: 'importStateArchive',
      code: 'STATE_ALREADY_EXISTS',
      requestId: expect.any(String),
      subject: expect.any(String),
    });
  });

  test('of a lineage that is live already is refused unless it is asked for by name', async () => {
    const { operation, userErrors } = await refused(archive, {
      name: 'restored/twin',
      allowSharedLineage: false,
    });
    expect(operation).toBeNull();
    expect(userErrors).toMatchObject([{ code: 'LINEAGE_IN_USE', path: ['input', 'allowSharedLineage'] }]);
  });

  test('that is a dry run reports what a real one would, and writes nothing', async () => {
    const { operation, userErrors } = await refused(archive, { name: 'restored/dry-run', dryRun: true });
    expect(userErrors).toEqual([]);
    expect(operation).toMatchObject({ status: 'SUCCEEDED', stateArchive: null, report: { dryRun: true } });
    const real = await importArchive(archive, { name: 'restored/dry-run' });
    expect(operation?.report).toEqual({ ...real.payload?.operation?.report, dryRun: true });
  });

  test('of a file cut short, altered, or no archive at all is refused with what is wrong', async () => {
    const middle = Math.floor(archive.length / 2);
    const flipped = archive.slice();
    flipped[middle] = (archive[middle] ?? 0) ^ 1;
    const cases: [Bytes, string][] = [
      [archive.slice(0, -1), 'ARCHIVE_TRUNCATED'],
      [archive.slice(0, middle), 'ARCHIVE_TRUNCATED'],
      [flipped, 'ARCHIVE_CORRUPT'],
      [new TextEncoder().encode('{"version": 4, "serial": 1}'), 'ARCHIVE_UNSUPPORTED_FORMAT'],
      [new Uint8Array(0), 'ARCHIVE_UNSUPPORTED_FORMAT'],
    ];
    for (const [bytes, code] of cases) {
      const { operation, userErrors } = await refused(bytes, { name: 'restored/damaged' });
      expect(userErrors).toEqual([{ code, message: expect.any(String), path: ['input', 'file'] }]);
      if (operation !== null) {
        expect(operation).toMatchObject({ status: 'FAILED', stateArchive: null, error: userErrors[0] });
      }
    }
  });

  test('of another file than the one expected is refused, and of the expected one is not', async () => {
    const { operation, userErrors } = await refused(archive, {
      name: 'restored/expected',
      expectedSha256: '0'.repeat(64),
    });
    expect([operation, userErrors]).toMatchObject([
      null,
      [{ code: 'ARCHIVE_DIGEST_MISMATCH', path: ['input', 'expectedSha256'] }],
    ]);
    const { payload } = await importArchive(archive, {
      name: 'restored/expected',
      expectedSha256: exported.archive?.sha256,
    });
    expect(payload?.operation?.status).toBe('SUCCEEDED');
  });

  test('larger than is accepted is refused with the limit', async () => {
    const { payload } = await importArchive(new Uint8Array(1024 * 1024 + 1), { name: 'restored/huge' });
    expect(payload).toMatchObject({
      operation: null,
      userErrors: [{ code: 'ARCHIVE_TOO_LARGE', message: expect.stringContaining('1048576') }],
    });
  });

  test('under a name outside the token’s patterns is FORBIDDEN, whether the name is given or the archive’s own', async () => {
    const token = await service.token({ states: ['team/*'] });
    const before = await rowCounts();
    for (const variables of [{ name: 'restored/outside' }, { name: SAMPLE_LABEL }, {}]) {
      const { denials, text } = await importArchive(archive, variables, token);
      expect(denials).toEqual(['importStateArchive: FORBIDDEN']);
      expect(text).not.toContain('exists');
    }
    expect(await rowCounts()).toEqual(before);
    const { payload } = await importArchive(archive, { name: 'team/inside' }, token);
    expect(payload?.operation?.status).toBe('SUCCEEDED');
  });

  test('into another environment is FORBIDDEN, whether it exists or not', async () => {
    await createEnvironment(service.database, 'ws_other', 'env_other');
    const answers = await Promise.all(
      [
        scopeOf({ workspace: 'ws_other', environment: 'env_other' }),
        scopeOf({ workspace: 'ws_absent', environment: 'env_absent' }),
      ].map((scope) => importArchive(archive, { scope, name: 'a' })),
    );
    expect(answers[0]?.denials).toEqual(['importStateArchive: FORBIDDEN']);
    expect(answers[1]?.errors).toEqual(answers[0]?.errors);
  });

  test('without the scope is FORBIDDEN, without a token not even received', async () => {
    const reader = await importArchive(
      archive,
      { name: 'restored/denied' },
      await service.token({ scopes: ['state.read', 'state.export'] }),
    );
    expect(reader.denials).toEqual(['importStateArchive: FORBIDDEN']);
    const anonymous = await service.ask(IMPORT, { token: null, file: { bytes: archive } });
    expect([anonymous.status, anonymous.denials]).toEqual([401, [': UNAUTHENTICATED']]);
  });

  test('by a token that may not read is carried out, and shows what may be shown', async () => {
    const token = await service.token({ scopes: ['state.import'] });
    const { payload, denials } = await importArchive(archive, { name: 'restored/unread' }, token);
    expect(payload?.operation).toMatchObject({
      status: 'SUCCEEDED',
      stateArchive: null,
      report: { name: 'restored/unread' },
    });
    expect(denials).toEqual([
      'importStateArchive.operation.stateArchive: FORBIDDEN',
      'importStateArchive.operation.archive.downloadUrl: FORBIDDEN',
    ]);
  });

  test('brings the history into another workspace, where it is that one’s alone', async () => {
    const there = { workspace: 'ws_there', environment: 'env_there' };
    await createEnvironment(service.database, there.workspace, there.environment);
    const token = await service.token(there);
    // The lineage is live in another environment, which is no matter here.
    const { payload } = await importArchive(archive, { allowSharedLineage: false }, token);
    expect(payload).toMatchObject({
      operation: { status: 'SUCCEEDED', archive: { historyDigest: exported.archive?.historyDigest } },
      userErrors: [],
    });
    expect(await startExport({ name: SAMPLE_LABEL }, token)).toMatchObject({
      payload: { operation: { archive: { historyDigest: exported.archive?.historyDigest } } },
    });
    const { data } = await service.ask('query ($id: ID!) { stateArchiveOperation(id: $id) { id } }', {
      variables: { id: payload?.operation?.id },
    });
    expect(data).toEqual({ stateArchiveOperation: null });
  });
});

describe('an export', () => {
  test('of a state that is not there is refused, of one without versions as empty', async () => {
    expect((await startExport({ name: 'no/such' })).payload).toMatchObject({
      operation: null,
      userErrors: [{ code: 'STATE_NOT_FOUND', path: ['input', 'name'] }],
    });
    expect((await startExport({ name: 'nul\0' })).payload).toMatchObject({
      operation: null,
      userErrors: [{ code: 'STATE_NOT_FOUND', path: ['input', 'name'] }],
    });
    await service.database.pool.query(`insert into states (name) values ('only/locked')`);
    expect((await startExport({ name: 'only/locked' })).payload).toMatchObject({
      operation: { status: 'FAILED', archive: null },
      userErrors: [{ code: 'STATE_EMPTY', path: ['input', 'name'] }],
    });
  });

  test.each([-1, 26, 2147483647])('with waitSeconds %i is refused', async (waitSeconds) => {
    expect((await startExport({ name: SAMPLE_LABEL, waitSeconds })).payload).toMatchObject({
      operation: null,
      userErrors: [{ code: 'INVALID_INPUT', path: ['input', 'waitSeconds'] }],
    });
  });

  test('that is not waited for comes back at once, and is found finished by its id', async () => {
    const { payload } = await startExport({ name: SAMPLE_LABEL, waitSeconds: 0 });
    expect(payload?.operation).toMatchObject({ finishedAt: null, archive: null });
    expect(['PENDING', 'RUNNING']).toContain(payload?.operation?.status);
    const id = payload?.operation?.id ?? '';
    let operation: Record<string, unknown>;
    do operation = await operationById(id, OPERATION);
    while (operation.finishedAt === null);
    expect(operation).toMatchObject({ id, status: 'SUCCEEDED', stateArchive: { name: SAMPLE_LABEL } });
  });

  test('asked for twice with one key is one operation; the key means nothing else', async () => {
    const input = { name: SAMPLE_LABEL, idempotencyKey: 'nightly 2026-03-02' };
    const first = await startExport(input);
    expect((await startExport(input)).payload?.operation?.id).toBe(first.payload?.operation?.id);
    const other = await startExport({ ...input, name: 'restored/network' });
    expect(other.payload).toMatchObject({
      operation: null,
      userErrors: [{ code: 'IDEMPOTENCY_KEY_REUSED', path: ['input', 'idempotencyKey'] }],
    });
    const stranger = await startExport(input, await service.token({ subject: 'bob@test' }));
    expect(stranger.payload?.operation?.id).not.toBe(first.payload?.operation?.id);
  });

  test('is listed with what it became by the next field of the same request', async () => {
    const { data } = await service.ask<
      Record<'a' | 'b', { operation: { id: string; stateArchive: object } }>
    >(
      `mutation {
        a: exportStateArchive(input: { name: "${SAMPLE_LABEL}" }) {
          operation { id stateArchive { status { lastExport { id } } } }
        }
        b: exportStateArchive(input: { name: "${SAMPLE_LABEL}" }) {
          operation { id stateArchive { status { lastExport { id } } } }
        }
      }`,
    );
    for (const { operation } of [data.a, data.b]) {
      expect(operation.stateArchive).toEqual({ status: { lastExport: { id: operation.id } } });
    }
  });
});

describe('a snapshot', () => {
  const SNAPSHOT = `mutation ($input: ImportStateSnapshotInput!) { importStateSnapshot(input: $input) {
    stateArchive { name lineage status { versionCount } manifest { currentSerial } }
    version { serial isCurrent source createdBy resourceCount outputNames }
    userErrors { code message path }
  } }`;
  const SNAPSHOT_FILE = `mutation ($file: Upload, $document: String) {
    importStateSnapshot(input: { name: "snap/file", file: $file, document: $document }) {
      version { serial resourceCount } userErrors { code path }
    }
  }`;
  const lineage = '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10';

  test('creates a state, and becomes the next version of one', async () => {
    const post = async (resources: Record<string, string>, source?: string) => {
      const document = documentOf(lineage, { resources, outputs: { b: '1', a: '2' } });
      const { data } = await service.ask(SNAPSHOT, {
        variables: { input: { name: 'snap/text', document, source } },
      });
      return data;
    };
    expect(await post({ one: '1' })).toEqual({
      importStateSnapshot: {
        stateArchive: {
          name: 'snap/text',
          lineage,
          status: { versionCount: 1 },
          manifest: { currentSerial: '1' },
        },
        version: {
          serial: '1',
          isCurrent: true,
          source: 'import',
          createdBy: 'alice@test',
          resourceCount: 1,
          outputNames: ['a', 'b'],
        },
        userErrors: [],
      },
    });
    expect(await post({ one: '1', two: '2' }, 'apply')).toMatchObject({
      importStateSnapshot: {
        stateArchive: { status: { versionCount: 2 }, manifest: { currentSerial: '2' } },
        version: { serial: '2', isCurrent: true, source: 'apply', resourceCount: 2 },
      },
    });
  });

  test('shows each of two in one request what is there after it', async () => {
    const document = documentOf(crypto.randomUUID(), {});
    const field = `importStateSnapshot(input: { name: "snap/twice", document: $document }) {
      stateArchive { status { versionCount } versions { nodes { serial isCurrent } } }
    }`;
    const { data } = await service.ask(`mutation ($document: String) { a: ${field} b: ${field} }`, {
      variables: { document },
    });
    expect(data).toEqual({
      a: {
        stateArchive: {
          status: { versionCount: 1 },
          versions: { nodes: [{ serial: '1', isCurrent: true }] },
        },
      },
      b: {
        stateArchive: {
          status: { versionCount: 2 },
          versions: {
            nodes: [
              { serial: '2', isCurrent: true },
              { serial: '1', isCurrent: false },
            ],
          },
        },
      },
    });
  });

  test('may come as a file', async () => {
    const bytes = new TextEncoder().encode(documentOf(crypto.randomUUID(), { resources: { a: '1' } }));
    const { data } = await service.ask(SNAPSHOT_FILE, { file: { bytes, name: 'terraform.tfstate' } });
    expect(data).toEqual({
      importStateSnapshot: { version: { serial: '1', resourceCount: 1 }, userErrors: [] },
    });
  });

  test('comes as a file or as text: both, or neither, is refused', async () => {
    const document = documentOf(crypto.randomUUID(), {});
    const both = await service.ask(SNAPSHOT_FILE, {
      variables: { document },
      file: { bytes: new TextEncoder().encode(document) },
    });
    const neither = await service.ask(SNAPSHOT_FILE);
    const nulls = await service.ask(SNAPSHOT_FILE, { variables: { file: null, document: null } });
    for (const { data } of [both, neither, nulls]) {
      expect(data).toEqual({
        importStateSnapshot: {
          version: null,
          userErrors: [{ code: 'INVALID_INPUT', path: ['input', 'document'] }],
        },
      });
    }
  });

  test.each([
    ['a source Kilolock does not know', { source: 'rollback' }, 'INVALID_INPUT', ['input', 'source']],
    ['a name nobody could address', { name: 'a//b' }, 'INVALID_INPUT', ['input', 'name']],
    ['no name', { name: '' }, 'INVALID_INPUT', ['input', 'name']],
    ['no document', { document: '' }, 'UNSUPPORTED_STATE_DOCUMENT', null],
    ['no state', { document: '{"password": "hunter2"}' }, 'UNSUPPORTED_STATE_DOCUMENT', null],
    ['no JSON', { document: '{"password": "hunter2"' }, 'UNSUPPORTED_STATE_DOCUMENT', null],
  ])('with %s is refused, and its contents are not repeated', async (_name, change, code, path) => {
    const before = await rowCounts();
    const { data, text } = await service.ask(SNAPSHOT, {
      variables: {
        input: { name: 'snap/refused', document: documentOf(crypto.randomUUID(), {}), ...change },
      },
    });
    expect(data).toEqual({
      importStateSnapshot: {
        stateArchive: null,
        version: null,
        userErrors: [{ code, message: expect.any(String), path }],
      },
    });
    expect(text).not.toContain('hunter2');
    expect(await rowCounts()).toEqual(before);
  });

  test('of a state that is locked is refused', async () => {
    const { stateId } = await postHistory(service.database, null, 'snap/locked', [{}]);
    await service.database.pool.query(
      `insert into state_locks (state_id, lock_id, who, acquired_at) values ($1, 'lock-1', 'carol', now())`,
      [stateId],
    );
    const { data } = await service.ask(SNAPSHOT, {
      variables: { input: { name: 'snap/locked', document: documentOf(crypto.randomUUID(), {}) } },
    });
    expect(data).toMatchObject({
      importStateSnapshot: { version: null, userErrors: [{ code: 'STATE_LOCKED', path: ['input', 'name'] }] },
    });
  });
});

describe('an idempotency key', () => {
  test('of an import finds the operation again, and is another request’s in another environment', async () => {
    const key = { idempotencyKey: 'restore-1', name: 'restored/once' };
    const first = await importArchive(archive, key);
    expect(first.payload?.operation?.status).toBe('SUCCEEDED');
    const second = await importArchive(archive, key);
    expect(second.payload).toEqual(first.payload);
    await createEnvironment(service.database, 'ws_000000000000', 'env_second');
    const elsewhere = await importArchive(
      archive,
      key,
      await service.token({ workspace: 'ws_000000000000', environment: 'env_second' }),
    );
    expect(elsewhere.payload).toMatchObject({
      operation: null,
      userErrors: [{ code: 'IDEMPOTENCY_KEY_REUSED', path: ['input', 'idempotencyKey'] }],
    });
  });

  const KEYED = `mutation ($input: ImportStateSnapshotInput!) {
    importStateSnapshot(input: $input) { stateArchive { name } version { id serial } userErrors { code path } }
  }`;

  test('of a snapshot gives the same version for the same request, and refuses another', async () => {
    const document = documentOf(crypto.randomUUID(), {});
    const ask = async (change: object) =>
      (
        await service.ask(KEYED, {
          variables: { input: { name: 'snap/keyed', document, idempotencyKey: 'post-1', ...change } },
        })
      ).data;
    const first = await ask({});
    expect(first).toMatchObject({
      importStateSnapshot: { stateArchive: { name: 'snap/keyed' }, version: { serial: '1' }, userErrors: [] },
    });
    expect(await ask({})).toEqual(first);
    for (const change of [
      { document: documentOf(crypto.randomUUID(), {}) },
      { name: 'snap/other' },
      { source: 'apply' },
    ]) {
      expect(await ask(change)).toEqual({
        importStateSnapshot: {
          stateArchive: null,
          version: null,
          userErrors: [{ code: 'IDEMPOTENCY_KEY_REUSED', path: ['input', 'idempotencyKey'] }],
        },
      });
    }
    expect(await ask({ idempotencyKey: 'post-2' })).toMatchObject({
      importStateSnapshot: { version: { serial: '2' } },
    });
  });

  test('of a snapshot whose state is gone since says so, and writes nothing', async () => {
    const input = {
      name: 'snap/gone',
      document: documentOf(crypto.randomUUID(), {}),
      idempotencyKey: 'gone-1',
    };
    const ask = async () => (await service.ask<object>(KEYED, { variables: { input } })).data;
    expect(await ask()).toMatchObject({ importStateSnapshot: { version: { serial: '1' }, userErrors: [] } });
    await service.database.pool.query(
      `update states set lifecycle_status = 'archived', name = 'snap/gone--archived' where name = 'snap/gone'`,
    );
    expect(await ask()).toMatchObject({
      importStateSnapshot: {
        version: null,
        userErrors: [{ code: 'STATE_NOT_FOUND', path: ['input', 'name'] }],
      },
    });
    const { rows } = await service.database.pool.query(`select 1 from states where name = 'snap/gone'`);
    expect(rows).toEqual([]);
  });

  test('of a snapshot asked for many times at the same moment gives one version', async () => {
    const input = {
      name: 'snap/together',
      document: documentOf(crypto.randomUUID(), {}),
      idempotencyKey: 'together-1',
    };
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => service.ask(KEYED, { variables: { input } })),
    );
    const data = answers.map((answer) => answer.data);
    expect(data[0]).toMatchObject({ importStateSnapshot: { version: { serial: '1' }, userErrors: [] } });
    expect(data).toEqual(Array(4).fill(data[0]));
  });

  test('of a snapshot that was refused is free for the same request', async () => {
    const { stateId } = await postHistory(service.database, null, 'snap/held', [{}]);
    await service.database.pool.query(
      `insert into state_locks (state_id, lock_id, who, acquired_at) values ($1, 'lock-1', 'carol', now())`,
      [stateId],
    );
    const input = {
      name: 'snap/held',
      document: documentOf(crypto.randomUUID(), {}),
      idempotencyKey: 'held-1',
    };
    const refused = await service.ask(KEYED, { variables: { input } });
    expect(refused.data).toMatchObject({ importStateSnapshot: { userErrors: [{ code: 'STATE_LOCKED' }] } });
    await service.database.pool.query('delete from state_locks where state_id = $1', [stateId]);
    const { data } = await service.ask(KEYED, { variables: { input } });
    expect(data).toMatchObject({ importStateSnapshot: { version: { serial: '2' }, userErrors: [] } });
  });
});
