import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ENTITIES_ANSWERED } from '../../src/http/limits.ts';
import { type GraphqlAnswer, startTestService, type TestService } from '../support/service.ts';
import { postHistory } from './support/states.ts';

const SECRET = 'the-gateways-own-secret-1';
const NEXT_SECRET = 'the-gateways-own-secret-2';
const PROOF = { 'x-gateway-secret': SECRET };

let service: TestService;
let stateId: string;

beforeAll(async () => {
  service = await startTestService({ GATEWAY_SECRET: `${SECRET},${NEXT_SECRET}` });
  ({ stateId } = await postHistory(service.database, null, 'prod/network', [{}]));
});

afterAll(() => service.stop());

const SDL = '{ _service { sdl } }';

function entities(): string {
  return `{ _entities(representations: [{ __typename: "StateArchive", id: "${stateId}" }]) {
    ... on StateArchive { name }
  } }`;
}

describe('with a gateway’s secret', () => {
  test('what only a gateway asks is answered to whoever shows it', async () => {
    for (const secret of [SECRET, NEXT_SECRET]) {
      const headers = { 'x-gateway-secret': secret };
      expect((await service.ask(entities(), { headers })).data).toEqual({
        _entities: [{ name: 'prod/network' }],
      });
      expect((await service.ask(SDL, { headers, token: null })).data).toEqual({
        _service: { sdl: expect.stringContaining('type StateArchive') },
      });
    }
  });

  test.each([
    ['is missing', {}],
    ['is wrong', { 'x-gateway-secret': 'the-gateways-own-secret-3' }],
    ['is only the beginning of it', { 'x-gateway-secret': SECRET.slice(0, -1) }],
    ['is both at once', { 'x-gateway-secret': `${SECRET},${NEXT_SECRET}` }],
    ['is sent as a credential', { authorization: `Bearer ${SECRET}` }],
    ['is under another name', { 'gateway-secret': SECRET }],
  ])('it is refused when the secret %s, and nothing is read', async (_name, headers) => {
    const isCredential = 'authorization' in headers;
    for (const [query, path] of [
      [SDL, '_service'],
      [entities(), '_entities'],
      [`{ renamed: _entities(representations: []) { __typename } }`, 'renamed'],
      [`{ ...f } fragment f on Query { ${SDL.slice(1, -1)} }`, '_service'],
    ] as const) {
      let answer: Awaited<ReturnType<TestService['ask']>> | undefined;
      const statements = await service.statementsOf(async () => {
        answer = await service.ask(query, { headers });
      });
      if (isCredential) {
        expect(answer?.status).toBe(401);
        continue;
      }
      expect([answer?.data, answer?.denials, statements]).toEqual([null, [`${path}: FORBIDDEN`], []]);
      expect(answer?.text).not.toContain('type StateArchive');
    }
  });

  test('what people ask is answered as ever, beside what is refused and without it', async () => {
    expect((await service.ask('{ stateArchive(name: "prod/network") { id } }')).data).toEqual({
      stateArchive: { id: stateId },
    });
    const exported = await service.ask(
      'mutation { exportStateArchive(input: { name: "prod/network" }) { operation { status } } }',
    );
    expect(exported.data).toEqual({ exportStateArchive: { operation: { status: 'SUCCEEDED' } } });
  });

  test('1 000 references take the statements that 100 take, and 2, whatever they refer to', async () => {
    const { rows } = await service.database.pool.query<{ id: string; label: string }>(
      `insert into states (id, tenant_id, name, lineage)
       select gen_random_uuid(), tenant_id, name || '-' || n, gen_random_uuid()
       from states, generate_series(1, 999) n where id = $1 returning id, name as label`,
      [stateId],
    );
    const states = [{ id: stateId, label: 'prod/network' }, ...rows];
    const home = { workspaceId: 'ws_000000000000', environmentId: 'env_000000000000' };
    const kinds = {
      State: states.map(({ id }) => ({ __typename: 'State', id })),
      'StateArchive by id': states.map(({ id }) => ({ __typename: 'StateArchive', id })),
      'StateArchive by name': states.map(({ label: name }) => ({
        __typename: 'StateArchive',
        ...home,
        name,
      })),
    };
    const query = `query ($r: [_Any!]!) { _entities(representations: $r) {
      ... on State { archive { ...seen } }
      ... on StateArchive { ...seen }
    } }
    fragment seen on StateArchive { name status { versionCount exportable lastExport { id } } }`;
    const token = await service.token();
    for (const [kind, references] of Object.entries(kinds)) {
      const statements: number[] = [];
      for (const count of [2, 2, 100, 1_000]) {
        let answer: GraphqlAnswer<{ _entities: unknown[] }> | undefined;
        const sent = await service.statementsOf(async () => {
          answer = await service.ask(query, {
            headers: PROOF,
            variables: { r: references.slice(0, count) },
            token,
          });
        });
        expect([kind, answer?.errors]).toEqual([kind, []]);
        expect(answer?.data._entities).toHaveLength(count);
        expect(answer?.text.match(/"versionCount":/g)).toHaveLength(count);
        statements.push(sent.length);
      }
      const [, few] = statements;
      expect([kind, ...statements.slice(1)]).toEqual([kind, few, few, few]);
    }
  });

  test('it is answered 2 000 references: the surplus alone fails, and what is absurd is refused whole', async () => {
    const query = `query ($r: [_Any!]!) { _entities(representations: $r) { ... on StateArchive { name } } }`;
    const ask = (count: number) =>
      service.ask(query, {
        headers: PROOF,
        variables: { r: Array.from({ length: count }, () => ({ __typename: 'StateArchive', id: stateId })) },
      });
    const beyond = await ask(ENTITIES_ANSWERED.gateway + 1);
    expect(beyond.denials).toEqual([`_entities.${ENTITIES_ANSWERED.gateway}: QUERY_TOO_LARGE`]);
    const absurd = await ask(5 * ENTITIES_ANSWERED.gateway + 1);
    expect(absurd.denials).toEqual([': QUERY_TOO_LARGE']);
  });

  test('it is no credential: it opens nothing that a token does not', async () => {
    const anonymous = await service.ask(entities(), { headers: PROOF, token: null });
    expect([anonymous.data, anonymous.denials]).toEqual([
      { _entities: [null] },
      ['_entities.0: UNAUTHENTICATED'],
    ]);
    const unscoped = await service.ask(entities(), {
      headers: PROOF,
      token: await service.token({ scopes: [] }),
    });
    expect([unscoped.data, unscoped.denials]).toEqual([{ _entities: [null] }, ['_entities.0: FORBIDDEN']]);
    const elsewhere = await service.token({ workspace: 'ws_other', environment: 'env_other' });
    expect((await service.ask(entities(), { headers: PROOF, token: elsewhere })).data).toEqual({
      _entities: [null],
    });
    expect(
      (await service.ask('{ stateArchives { nodes { id } } }', { headers: PROOF, token: null })).denials,
    ).toEqual(['stateArchives: UNAUTHENTICATED']);
  });

  test('it never reaches the log, shown or guessed, nor an answer', async () => {
    const guess = 'a-guess-at-the-gateways-secret';
    const answers = [
      await service.ask(SDL, { headers: PROOF }),
      await service.ask(SDL, { headers: { 'x-gateway-secret': guess } }),
      await service.ask('{ nonsense', { headers: PROOF }),
      // A request is logged when its response is closed, which the next one comes after.
      await service.ask(SDL),
    ];
    const texts = [...service.log, ...answers.map(({ text }) => text)];
    expect(service.log.length).toBeGreaterThan(0);
    expect(
      texts.filter((text) => [SECRET, NEXT_SECRET, guess].some((secret) => text.includes(secret))),
    ).toEqual([]);
  });
});

test('without a gateway’s secret, whoever may see an entity may ask for it by reference', async () => {
  const open = await startTestService();
  try {
    const posted = await postHistory(open.database, null, 'prod/network', [{}]);
    const { data } = await open.ask(
      `{ _service { sdl } _entities(representations: [{ __typename: "StateArchive", id: "${posted.stateId}" }]) {
        ... on StateArchive { name }
      } }`,
    );
    expect(data).toEqual({ _service: { sdl: expect.any(String) }, _entities: [{ name: 'prod/network' }] });
  } finally {
    await open.stop();
  }
});
