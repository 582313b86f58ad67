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

  test('it is answered many more references than others are, with the statements of a few', async () => {
    const query = `query ($r: [_Any!]!) { _entities(representations: $r) { ... on StateArchive {
      name status { versionCount lastExport { id } } manifest { versionCount } } } }`;
    const references = (count: number) =>
      Array.from({ length: count }, (_, index) => ({
        __typename: 'StateArchive',
        id: index === count - 1 ? stateId : `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
      }));
    const ask = async (count: number) => {
      let answer: GraphqlAnswer<{ _entities: unknown[] }> | undefined;
      const statements = await service.statementsOf(async () => {
        answer = await service.ask(query, { headers: PROOF, variables: { r: references(count) } });
      });
      return { answer, statements: statements.length };
    };
    const few = await ask(2);
    const many = await ask(1_200);
    expect(many.answer?.errors).toEqual([]);
    expect(many.answer?.data._entities.at(-1)).toMatchObject({ name: 'prod/network' });
    expect(many.statements).toBe(few.statements);
    const beyond = await ask(ENTITIES_ANSWERED.gateway + 1);
    expect(beyond.answer?.denials).toEqual([`_entities.${ENTITIES_ANSWERED.gateway}: QUERY_TOO_LARGE`]);
    const absurd = await ask(5 * ENTITIES_ANSWERED.gateway + 1);
    expect(absurd.answer?.denials).toEqual([': QUERY_TOO_LARGE']);
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
