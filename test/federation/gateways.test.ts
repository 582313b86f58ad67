import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import {
  DEVELOPMENT_AUDIENCE,
  DEVELOPMENT_ISSUER,
  loadOrCreateDevelopmentKey,
} from '../../src/auth/development-key.ts';
import { present } from '../../src/base/invariant.ts';
import { createApiToken, createEnvironment, createWorkspace } from '../auth/support/kilolock-tenancy.ts';
import { postHistory } from '../graphql/support/states.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { addressOf, composeExample } from './support/examples.ts';
import { apolloRouter, type Gateway, startApolloRouter, startGateway } from './support/gateway.ts';
import { type Platform, startPlatform } from './support/platform.ts';

const SECRET = 'the-secret-of-the-gateway-in-this-test';
const HOME = { workspaceId: 'ws_000000000000', environmentId: 'env_000000000000' };

let service: TestService;
let platform: Platform;
let keys: Server;
let stateId: string;
/** Real states, of the inventory's second page so to speak: far more than anybody else is answered. */
let manyStates: readonly string[];

beforeAll(async () => {
  service = await startTestService({ GATEWAY_SECRET: SECRET });
  platform = await startPlatform();
  keys = await publishKey(service);
  ({ stateId } = await postHistory(service.database, null, 'prod/network', [
    { resources: { a: 'one' } },
    { resources: { a: 'two' } },
  ]));
  manyStates = await copyState(stateId, 249);
  platform.states = [stateId, ...manyStates];
  platform.deployments = [
    { service: 'shop', stateArchive: { ...HOME, name: 'prod/network' } },
    { service: 'blog', stateArchive: { ...HOME, name: 'prod/nowhere' } },
  ];
});
afterEach(() => {
  platform.received.length = 0;
});
afterAll(async () => {
  await platform.stop();
  keys.close();
  await service.stop();
});

/** States as the inventory of a platform knows them: without versions, as after `terraform init`. */
async function copyState(id: string, count: number): Promise<readonly string[]> {
  const { rows } = await service.database.pool.query<{ id: string }>(
    `insert into states (id, tenant_id, name, lineage)
     select gen_random_uuid(), tenant_id, name || '-' || n, gen_random_uuid()
     from states, generate_series(1, $2) n where id = $1 returning id`,
    [id, count],
  );
  return rows.map((row) => row.id);
}

/** What the issuer of the service's tokens publishes. */
async function publishKey({ dataDirectory }: TestService): Promise<Server> {
  const { keyId, publicKey } = await loadOrCreateDevelopmentKey(dataDirectory);
  const body = JSON.stringify({
    keys: [{ ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'EdDSA' }],
  });
  const server = createServer((_request, response) => response.end(body));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
  readonly data: any;
  readonly errors: readonly {
    readonly message: string;
    readonly path?: readonly unknown[];
    readonly extensions: { readonly code: string; readonly requestId?: string };
  }[];
  readonly text: string;
}

if (apolloRouter === undefined)
  test.skip('through Apollo Router (skipped without a `router` on PATH: cargo install apollo-router)', () => {});

describe.each([
  { name: 'Hive Gateway', program: 'hive.mjs', scopes: true, carriesFiles: true },
  { name: '@apollo/gateway', program: 'apollo.mjs', scopes: false, carriesFiles: false },
  ...(apolloRouter === undefined
    ? []
    : [{ name: 'Apollo Router', program: 'router.yaml', scopes: false, carriesFiles: true }]),
])('through $name', ({ program, scopes, carriesFiles }) => {
  const isRouter = program === 'router.yaml';
  let gateway: Gateway;

  beforeAll(async () => {
    const { supergraph } = composeExample({
      addresses: { 'state-archive': `${service.url}/graphql`, ...platform.addresses },
      scopes,
    });
    const environment = {
      GATEWAY_SECRET: SECRET,
      AUTH_JWKS_URL: addressOf(keys),
      AUTH_ISSUER: DEVELOPMENT_ISSUER,
      AUTH_AUDIENCE: DEVELOPMENT_AUDIENCE,
    };
    gateway = await (isRouter
      ? startApolloRouter(supergraph, environment)
      : startGateway(program, supergraph, environment));
  });
  afterAll(() => gateway.stop());

  async function post(body: string | FormData, headers: Readonly<Record<string, string>>): Promise<Answer> {
    const response = await fetch(gateway.url, { method: 'POST', headers, body });
    const text = await response.text();
    const { data, errors = [] } = JSON.parse(text);
    return { status: response.status, data, errors, text };
  }

  async function ask(
    query: string,
    {
      variables = {},
      token,
      headers = {},
    }: {
      variables?: object;
      token?: string | null;
      headers?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<Answer> {
    const credential = token === undefined ? await service.token() : token;
    return post(JSON.stringify({ query, variables }), {
      'content-type': 'application/json',
      ...(credential !== null && { authorization: `Bearer ${credential}` }),
      ...headers,
    });
  }

  async function upload(
    query: string,
    variables: object,
    place: string,
    bytes: Uint8Array<ArrayBuffer>,
  ): Promise<Answer> {
    const form = new FormData();
    form.set('operations', JSON.stringify({ query, variables }));
    form.set('map', JSON.stringify({ 0: [place] }));
    form.set('0', new Blob([bytes]), 'network.klstate');
    return post(form, {
      authorization: `Bearer ${await service.token()}`,
      'apollo-require-preflight': 'true',
    });
  }

  async function exported(): Promise<{ bytes: Uint8Array<ArrayBuffer>; sha256: string }> {
    const { data } = await ask(`mutation { exportStateArchive(input: { name: "prod/network" }) {
      operation { status archive { sha256 downloadUrl } } userErrors { code } } }`);
    const { archive, status } = data.exportStateArchive.operation;
    expect(status).toBe('SUCCEEDED');
    const response = await fetch(archive.downloadUrl);
    return { bytes: new Uint8Array(await response.arrayBuffer()), sha256: archive.sha256 };
  }

  test('a preview is what the service itself tells', async () => {
    const query = `{ stateArchive(name: "prod/network") {
      name manifest { versionCount historyDigest rawBytes } versions(first: 1) { nodes { serial } pageInfo { hasNextPage } } } }`;
    const { data, errors } = await ask(query);
    expect(errors).toEqual([]);
    expect(data.stateArchive.manifest.versionCount).toBe(2);
    expect(data).toEqual((await service.ask(query)).data);
  });

  test('an export is taken, and its archive downloaded from the service itself', async () => {
    const { bytes, sha256 } = await exported();
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(sha256);
  });

  if (carriesFiles) {
    test.each([
      [
        'a file variable',
        '$file: Upload!',
        'input: { file: $file, NAME, allowSharedLineage: true',
        'variables.file',
      ],
      ['the whole input', '$input: ImportStateArchiveInput!', 'input: $input', 'variables.input.file'],
    ])('an archive is dry-run and imported, sent as %s', async (_kind, declared, given, place) => {
      const { bytes } = await exported();
      for (const dryRun of [true, false]) {
        const name = `${program}/${place}`;
        const isWhole = place === 'variables.input.file';
        const input = { file: null, name, allowSharedLineage: true, dryRun };
        const query = `mutation (${declared}) {
        importStateArchive(${isWhole ? given : given.replace('NAME', `name: "${name}", dryRun: ${dryRun}`)}${isWhole ? '' : ' }'}) {
          operation { status report { dryRun name versionCount } stateArchive { name } } userErrors { code message } } }`;
        const { data, errors } = await upload(query, isWhole ? { input } : { file: null }, place, bytes);
        expect(errors).toEqual([]);
        expect(data.importStateArchive).toEqual({
          operation: {
            status: 'SUCCEEDED',
            report: { dryRun, name, versionCount: 2 },
            stateArchive: dryRun ? null : { name },
          },
          userErrors: [],
        });
      }
    });

    test('a damaged archive is told to be one, and writes nothing', async () => {
      const { bytes } = await exported();
      const { data } = await upload(
        `mutation ($file: Upload!) { importStateArchive(input: { file: $file, name: "${program}/damage" }) {
        operation { status } userErrors { code path } } }`,
        { file: null },
        'variables.file',
        bytes.subarray(0, bytes.length / 2),
      );
      expect(data.importStateArchive.userErrors).toMatchObject([{ code: 'ARCHIVE_TRUNCATED' }]);
      const looked = await ask(`{ stateArchive(name: "${program}/damage") { id } }`);
      expect(looked.data).toEqual({ stateArchive: null });
    });
  } else {
    test('a file is refused by the gateway, and a snapshot goes as text', async () => {
      const refused = await upload(
        'mutation ($file: Upload!) { importStateArchive(input: { file: $file }) { userErrors { code } } }',
        { file: null },
        'variables.file',
        new Uint8Array(1),
      );
      expect([refused.status, refused.data]).toEqual([400, undefined]);
      const document = JSON.stringify({
        version: 4,
        serial: 1,
        lineage: crypto.randomUUID(),
        resources: [],
        outputs: {},
      });
      const { data } = await ask(
        `mutation ($document: String!) { importStateSnapshot(input: { name: "through/snapshot", document: $document }) {
        version { serial } userErrors { code } } }`,
        { variables: { document } },
      );
      expect(data).toEqual({ importStateSnapshot: { version: { serial: '1' }, userErrors: [] } });
    });
  }

  test.each([true, false])(
    'an archive is announced, sent to the service itself, and imported by its id; a dry run: %s',
    async (dryRun) => {
      const { bytes, sha256 } = await exported();
      const announced = { byteLength: String(bytes.length), sha256, fileName: 'network.klstate' };
      const staged = await ask(
        `mutation ($input: StageStateArchiveUploadInput!) { stageStateArchiveUpload(input: $input) {
          upload { id url method headers { name value } } userErrors { code message } } }`,
        { variables: { input: announced } },
      );
      expect(staged.data.stageStateArchiveUpload.userErrors).toEqual([]);
      const { id, url, method, headers } = staged.data.stageStateArchiveUpload.upload;
      const fields = headers.map(({ name, value }: { name: string; value: string }) => [name, value]);
      const sent = await fetch(url, { method, headers: Object.fromEntries(fields), body: bytes });
      expect([sent.ok, new URL(url).origin]).toEqual([true, service.url]);
      const input = { uploadId: id, name: `staged/${program}`, allowSharedLineage: true, dryRun };
      const { data } = await ask(
        `mutation ($input: ImportStateArchiveInput!) { importStateArchive(input: $input) {
          operation { status report { dryRun versionCount } } userErrors { code message } } }`,
        { variables: { input } },
      );
      expect(data.importStateArchive).toEqual({
        operation: { status: 'SUCCEEDED', report: { dryRun, versionCount: 2 } },
        userErrors: [],
      });
    },
  );

  test('what a caller can mend comes as data, with its code, and what it cannot as an error with its code', async () => {
    const answer = await ask(`mutation { exportStateArchive(input: { name: "prod/nothing" }) {
      operation { id } userErrors { code message path } } }`);
    expect(answer.data.exportStateArchive).toMatchObject({
      operation: null,
      userErrors: [{ code: 'STATE_NOT_FOUND', path: ['input', 'name'] }],
    });
    const wrong = await ask(
      '{ stateArchives(first: 0) { nodes { id } } stateArchive(name: "prod/network") { name versions(first: 0) { totalCount } } }',
    );
    expect(wrong.data).toEqual({
      stateArchives: null,
      stateArchive: { name: 'prod/network', versions: null },
    });
    expect(
      wrong.errors.map(({ extensions: { code }, path }) => `${path?.join('.')}: ${code}`).sort(),
    ).toEqual(['stateArchive.versions: BAD_USER_INPUT', 'stateArchives: BAD_USER_INPUT']);
    for (const { message, extensions } of wrong.errors) {
      expect(message).toContain('first');
      expect(extensions.requestId).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  test('250 states of another subgraph’s page have their archive view, in a constant number of statements', async () => {
    const query = `query ($first: Int!) { states(first: $first) {
      id costCentre archive { name status { versionCount exportable } } } }`;
    const token = await service.token();
    const count = async (first: number) => {
      let answer: Answer | undefined;
      const statements = await service.statementsOf(async () => {
        answer = await ask(query, { variables: { first }, token });
      });
      expect(answer?.errors).toEqual([]);
      expect(answer?.data.states).toHaveLength(first);
      for (const state of answer?.data.states ?? [])
        expect([state.costCentre, typeof state.archive.name]).toEqual([`centre of ${state.id}`, 'string']);
      return statements.length;
    };
    await count(2);
    expect(await count(250)).toBe(await count(2));
  });

  test('another subgraph’s types have the archive status by reference, beside pages of their own', async () => {
    const { data, errors } = await ask(
      `{ deployments { nodes { service stateArchive { name status { versionCount lastExport { status } } } }
         pageInfo { hasNextPage } } }`,
    );
    expect(data.deployments).toMatchObject({
      nodes: [
        { service: 'shop', stateArchive: { name: 'prod/network', status: { versionCount: 2 } } },
        { service: 'blog', stateArchive: null },
      ],
      pageInfo: { hasNextPage: false },
    });
    // A reference that leads nowhere is null. Hive Gateway says so in an error of its own as well.
    expect(errors.map(({ path }) => path?.slice(0, 4))).toEqual(
      program === 'hive.mjs' ? [['deployments', 'nodes', 1, 'stateArchive']] : [],
    );
  });

  const RAW =
    '{ states(first: 1) { id costCentre archive { name version(serial: "1") { serial rawState } } } }';

  test('a field that is denied takes nothing with it: neither its neighbours nor another subgraph’s data', async () => {
    const token = await service.token({ scopes: ['state.read'] });
    let answer: Answer | undefined;
    const statements = await service.statementsOf(async () => {
      answer = await ask(RAW, { token });
    });
    const { data, errors, text } = present(answer, 'it was answered');
    // What the gateway denies, the subgraph is not asked for; and what it asks, no raw state is read for.
    expect(statements.filter((statement) => statement.includes('raw_state::text'))).toEqual([]);
    expect(data.states).toMatchObject([
      {
        id: stateId,
        costCentre: `centre of ${stateId}`,
        archive: { name: 'prod/network', version: { serial: '1' } },
      },
    ]);
    expect(data.states[0].archive.version.rawState ?? null).toBeNull();
    expect(errors).toHaveLength(1);
    expect(errors[0]?.extensions.code).toBe(scopes ? 'UNAUTHORIZED_FIELD_OR_TYPE' : 'FORBIDDEN');
    expect(text).not.toContain('terraform_data');
  });

  test('without a credential other subgraphs answer, and this one denies', async () => {
    const { data, errors } = await ask('{ states(first: 1) { id costCentre archive { name } } }', {
      token: null,
    });
    expect(data.states).toMatchObject([{ id: stateId, costCentre: `centre of ${stateId}` }]);
    expect(data.states[0].archive ?? null).toBeNull();
    expect(errors.length).toBeGreaterThan(0);
    for (const { extensions } of errors)
      expect(extensions.code).toBe(scopes ? 'UNAUTHORIZED_FIELD_OR_TYPE' : 'UNAUTHENTICATED');
  });

  test('the subgraph denies what it is asked without the gateway in between', async () => {
    const token = await service.token({ scopes: ['state.read'] });
    const direct = await service.ask(
      `{ _entities(representations: [{ __typename: "State", id: "${stateId}" }]) { __typename } }`,
    );
    expect(direct.denials).toEqual(['_entities: FORBIDDEN']);
    const proven = await service.ask(
      `{ _entities(representations: [{ __typename: "State", id: "${stateId}" }]) {
        ... on State { archive { version(serial: "1") { serial rawState } } } } }`,
      { token, headers: { 'x-gateway-secret': SECRET } },
    );
    expect(proven.denials).toEqual(['_entities.0.archive.version.rawState: FORBIDDEN']);
  });

  test('a subgraph gets the headers it is meant to get, and none that a client made up', async () => {
    const { errors } = await ask('{ states(first: 1) { id archive { name } } }', {
      headers: { 'x-gateway-secret': 'made-up', cookie: 'session=1', 'x-request-id': 'from-the-client' },
    });
    expect(errors).toEqual([]);
    expect(platform.received).toHaveLength(1);
    const [received] = platform.received;
    expect(received).toMatchObject({
      authorization: expect.stringMatching(/^Bearer /),
      'x-request-id': 'from-the-client',
    });
    expect(received).not.toHaveProperty('cookie');
    expect(received).not.toHaveProperty('x-gateway-secret');
    const lines = service.log.filter((line) => line.includes('"clientRequestId":"from-the-client"'));
    expect(lines.length).toBeGreaterThan(0);
  });

  test('Kilolock’s own tokens, which no gateway can read, are the subgraph’s to judge', async () => {
    const environment = await createEnvironment(service.database, await createWorkspace(service.database));
    await postHistory(service.database, environment, 'prod/opaque', [{}]);
    const { secret: token } = await createApiToken(service.database, environment);
    const { data, errors } = await ask(
      '{ stateArchive(name: "prod/opaque") { name version(serial: "1") { serial rawState } } }',
      { token },
    );
    expect(data.stateArchive).toEqual({ name: 'prod/opaque', version: { serial: '1', rawState: null } });
    expect(errors.map(({ extensions }) => extensions.code)).toEqual(['FORBIDDEN']);
  });
});
