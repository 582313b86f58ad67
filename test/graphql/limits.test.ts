import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { getIntrospectionQuery } from 'graphql';
import { ENTITIES_ANSWERED, MAX_DOCUMENT_TOKENS, QUERY_LIMITS } from '../../src/http/limits.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { postHistory } from './support/states.ts';

const MAX_OPERATIONS = 2;

let service: TestService;

beforeAll(async () => {
  service = await startTestService({ MAX_OPERATIONS_PER_PRINCIPAL: String(MAX_OPERATIONS) });
  for (const label of ['app', 'db', 'net']) await postHistory(service.database, null, label, [{}]);
});

afterAll(() => service.stop());

/** Answers `count` levels deep, of which the last is a scalar. */
function nested(count: number): string {
  const levels = Array.from(
    { length: count - 2 },
    (_, index) => ['status', 'lastExport', 'stateArchive'][index % 3],
  );
  return `{ stateArchive(name: "app") { ${levels.map((name) => `${name} { `).join('')} __typename ${'} '.repeat(count - 2)} } }`;
}

function times(count: number, text: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => text(index)).join(' ');
}

const exporting = (index: number) =>
  `m${index}: exportStateArchive(input: { name: "none" }) { userErrors { code } }`;

const named = (count: number) => times(count, (index) => `a${index}: serial`);
const rawStates = (count: number) =>
  `{ stateArchive(name: "app") { versions(first: ${count}) { nodes { rawState } } } }`;
const versionsWith = (fields: string) =>
  `{ stateArchives(first: 100) { nodes { versions(first: 90) { nodes { ${fields} } } } } }`;
const introspecting = (count: number) =>
  `{ ${times(count, (index) => `a${index}: __schema { ...F }`)} }
  fragment F on __Schema { ${times(70, (index) => `a${index}: __typename`)} }`;
/** The last fragment is spread two to the power of `count` times. */
const doubling = (count: number) =>
  `{ stateArchive(name: "app") { ...F0 } } fragment F${count} on StateArchive { id } ${times(
    count,
    (index) => `fragment F${index} on StateArchive { ...F${index + 1} ... { ...F${index + 1} } }`,
  )}`;

describe('a query at its limit is answered, and one beyond it costs nothing', () => {
  test.each<[what: string, limit: keyof typeof QUERY_LIMITS, fitting: string, beyond: string]>([
    ['levels of fields', 'depth', nested(QUERY_LIMITS.depth), nested(QUERY_LIMITS.depth + 1)],
    ['mutations', 'cost', `mutation { ${times(5, exporting)} }`, `mutation { ${times(6, exporting)} }`],
    // A version with its raw state is 251.
    ['raw states', 'cost', rawStates(39), rawStates(40)],
    // 9 201 where a version is one object, and 18 201 where it is two.
    ['fields of an object', 'cost', versionsWith(named(49)), versionsWith(named(50))],
    [
      'directives',
      'cost',
      versionsWith(times(24, () => 'id @include(if: true)')),
      versionsWith(times(25, () => 'id @include(if: true)')),
    ],
    ['introspection', 'cost', introspecting(7), introspecting(8)],
    ['fragments', 'cost', doubling(9), doubling(40)],
  ])('%s', async (_what, limit, fitting, beyond) => {
    const maximum = QUERY_LIMITS[limit];
    expect((await service.ask(fitting)).errors).toEqual([]);
    let refused = await service.ask('{ __typename }');
    const statements = await service.statementsOf(async () => {
      refused = await service.ask(beyond);
    });
    expect(refused.status).toBe(400);
    expect(refused.errors).toMatchObject([{ extensions: { code: 'QUERY_TOO_LARGE', limit, maximum } }]);
    expect(statements).toEqual([]);
    // The second time its document is known, and its size is still not accepted.
    expect((await service.ask(beyond)).text).toBe(refused.text);
  });
});

describe('references', () => {
  const query = 'query ($r: [_Any!]!) { _entities(representations: $r) { __typename } }';
  const references = (count: number) =>
    Array.from({ length: count }, () => ({ __typename: 'State', id: 'x' }));
  const found = (count: number) => Array(count).fill({ __typename: 'State' });

  test('beyond the limit fail alone', async () => {
    const limit = ENTITIES_ANSWERED.caller;
    const fitting = await service.ask(query, { variables: { r: references(limit) } });
    expect([fitting.data, fitting.errors]).toEqual([{ _entities: found(limit) }, []]);
    const { data, denials } = await service.ask(query, { variables: { r: references(limit + 2) } });
    expect(data).toEqual({ _entities: [...found(limit), null, null] });
    expect(denials).toEqual([
      `_entities.${limit}: QUERY_TOO_LARGE`,
      `_entities.${limit + 1}: QUERY_TOO_LARGE`,
    ]);
  });

  test('of several fields of a request are counted together, in the document as in variables', async () => {
    const { data, denials } = await service.ask(
      `query ($r: [_Any!]!) {
        a: _entities(representations: $r) { __typename }
        b: _entities(representations: [{ __typename: "State", id: "x" }, { __typename: "State", id: "x" }]) { __typename }
      }`,
      { variables: { r: references(ENTITIES_ANSWERED.caller - 1) } },
    );
    expect(data).toMatchObject({ b: [{ __typename: 'State' }, null] });
    expect(denials).toEqual(['b.1: QUERY_TOO_LARGE']);
  });

  test('in numbers that no list has are refused whole, before anything runs', async () => {
    for (const token of [null, await service.token()]) {
      const { status, errors } = await service.ask(query, {
        token,
        variables: { r: references(5 * ENTITIES_ANSWERED.caller + 1) },
      });
      expect(status).toBe(400);
      expect(errors).toMatchObject([{ extensions: { code: 'QUERY_TOO_LARGE', limit: 'representations' } }]);
    }
  });

  test('make a query dear that asks much of each', async () => {
    const dear = `query ($r: [_Any!]!) { _entities(representations: $r) {
      ... on StateArchive { versions(first: 100) { nodes { changes { added } } } } } }`;
    expect((await service.ask(dear, { variables: { r: references(10) } })).errors).toEqual([]);
    const { errors } = await service.ask(dear, { variables: { r: references(50) } });
    expect(errors).toMatchObject([{ extensions: { code: 'QUERY_TOO_LARGE', limit: 'cost' } }]);
  });
});

test.each([
  [
    'the introspection query of a playground',
    getIntrospectionQuery({ specifiedByUrl: true, inputValueDeprecation: true }),
  ],
  ['the question a gateway composes from', '{ _service { sdl } }'],
])('%s passes', async (_name, query) => {
  expect((await service.ask(query)).errors).toEqual([]);
});

describe('a length given by variable', () => {
  const query = (variable: string) => `query (${variable}) { stateArchives(first: ${variable.split(':')[0]}) {
    nodes { versions(first: 99) { nodes { sizeBytes sha256 } } }
  } }`;

  // Names that a plain object has members of.
  test.each(['$first', '$toString', '$constructor', '$__proto__', '$hasOwnProperty'])(
    'is counted as %s, and so is its default where none is sent',
    async (name) => {
      for (const token of [null, await service.token()]) {
        const byDefault = await service.ask(query(`${name}: Int! = 100`), { token });
        // Not a literal: it would set the prototype.
        const variables = Object.fromEntries([[name.slice(1), 100]]);
        const sent = await service.ask(query(`${name}: Int! = 1`), { token, variables });
        for (const { errors } of [byDefault, sent]) {
          expect(errors).toMatchObject([{ extensions: { code: 'QUERY_TOO_LARGE', limit: 'cost' } }]);
        }
      }
    },
  );

  test('is that of a list of references, when they are its default', async () => {
    const references = times(101, () => '{ __typename: "State", id: "x" }');
    const { errors } = await service.ask(
      `query ($toString: [_Any!]! = [${references}]) { _entities(representations: $toString) { __typename } }`,
      { token: null },
    );
    expect(errors.at(-1)).toMatchObject({
      path: ['_entities', 100],
      extensions: { code: 'QUERY_TOO_LARGE', limit: 'representations' },
    });
  });
});

test('a document of too many tokens is not parsed to its end', async () => {
  const { status, errors } = await service.ask(`{ ${'__typename '.repeat(MAX_DOCUMENT_TOKENS)} }`);
  expect(status).toBe(400);
  expect(errors).toMatchObject([{ extensions: { code: 'GRAPHQL_PARSE_FAILED' } }]);
});

test('every error of an answer has the request id, and the log has the request under it', async () => {
  const queries = [
    '{ nothing }',
    '{',
    'query ($n: Int) { stateArchives(first: $n) { nodes { id } } }',
    '{ a: stateArchives(first: 0) { nodes { id } } }',
    '{ stateArchive(name: "app") { version(serial: "1") { rawState } versions(first: 0) { totalCount } } }',
    nested(QUERY_LIMITS.depth + 1),
    'query A { __typename } query B { __typename }',
  ];
  const token = await service.token({ scopes: ['state.read'] });
  for (const [authorization, query] of [
    ...queries.map((each) => [`Bearer ${token}`, each]),
    ['Bearer nobody', '{ __typename }'],
  ] as const) {
    const response = await fetch(`${service.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify({ query, variables: { n: 'many' } }),
    });
    const { errors } = (await response.json()) as { errors: { extensions: { requestId?: string } }[] };
    const requestId = response.headers.get('x-request-id');
    expect(errors.length).toBeGreaterThan(0);
    expect(errors.map(({ extensions }) => extensions.requestId)).toEqual(errors.map(() => requestId));
    expect(service.log.filter((line) => line.includes(`"requestId":"${requestId}"`))).not.toEqual([]);
  }
});

describe('the exports and imports of one caller', () => {
  const query = `mutation ($name: String!, $key: String) {
    exportStateArchive(input: { name: $name, waitSeconds: 0, idempotencyKey: $key }) {
      operation { id status } userErrors { code message path }
    }
  }`;
  interface Started {
    readonly exportStateArchive: {
      readonly operation: { readonly id: string; readonly status: string } | null;
      readonly userErrors: readonly { readonly code: string }[];
    };
  }

  async function start(name: string, options: { key?: string; subject?: string } = {}) {
    const token = await service.token(options.subject === undefined ? {} : { subject: options.subject });
    const variables = { name, key: options.key ?? null };
    const { data } = await service.ask<Started>(query, { token, variables });
    const { operation, userErrors } = data.exportStateArchive;
    return operation?.id ?? userErrors.map(({ code }) => code).join();
  }

  async function records(): Promise<number> {
    const { rows } = await service.database.pool.query(
      'select count(*)::int as count from state_archive.operation',
    );
    return rows[0].count;
  }

  /** Runs `work` while no export gets to read a version; afterwards all of them have ended. */
  async function whileExportsWait(work: () => Promise<void>): Promise<void> {
    const client = await service.database.pool.connect();
    try {
      await client.query('begin');
      await client.query('lock table state_versions in access exclusive mode');
      await work();
    } finally {
      await client.query('rollback');
      client.release();
    }
    await until(async () => {
      const { rowCount } = await service.database.pool.query(
        `select from state_archive.operation where status in ('PENDING', 'RUNNING')`,
      );
      return rowCount === 0;
    });
  }

  const ID = /^[0-9a-f-]{36}$/;

  test('are refused beyond the limit before there is a record, and accepted again when one has ended', async () => {
    await whileExportsWait(async () => {
      expect(await start('app')).toMatch(ID);
      expect(await start('db')).toMatch(ID);
      const before = await records();
      expect(await start('net')).toBe('TOO_MANY_OPERATIONS');
      expect(await records()).toBe(before);
    });
    expect(await start('net', { subject: 'alice@test' })).toMatch(ID);
    await whileExportsWait(async () => {});
  });

  test('are counted for each subject by itself', async () => {
    await whileExportsWait(async () => {
      await start('app');
      await start('db');
      expect(await start('net', { subject: 'bob@test' })).toMatch(ID);
    });
  });

  test('that an idempotency key stands for are found at the limit too', async () => {
    await whileExportsWait(async () => {
      const first = await start('app', { key: 'once' });
      await start('db');
      expect(await start('app', { key: 'once' })).toBe(first);
    });
  });

  test('that begin at the same moment are counted one after another', async () => {
    await whileExportsWait(async () => {
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => start('app')));
      expect(outcomes.filter((outcome) => ID.test(outcome))).toHaveLength(MAX_OPERATIONS);
      expect(outcomes.filter((outcome) => outcome === 'TOO_MANY_OPERATIONS')).toHaveLength(
        8 - MAX_OPERATIONS,
      );
    });
  });

  test('count wherever they run, until their process has not been heard of for the length of its lease', async () => {
    const insert = `insert into state_archive.operation
      (kind, status, tenant_id, workspace_id, environment_id, state_name, state_label, actor, subject, lease_until)
      select 'IMPORT', 'RUNNING', tenant_id, workspace_id, environment_id, 'x', 'x', actor, subject, now() + $1::interval
      from state_archive.operation where subject = 'alice@test' limit 1 returning id`;
    const elsewhere: string[] = [];
    for (let index = 0; index < MAX_OPERATIONS; index += 1) {
      const { rows } = await service.database.pool.query(insert, ['1 minute']);
      elsewhere.push(rows[0].id);
    }
    expect(await start('app')).toBe('TOO_MANY_OPERATIONS');
    await service.database.pool.query(
      `update state_archive.operation set lease_until = now() - interval '1 second' where id = any($1)`,
      [elsewhere],
    );
    expect(await start('app')).toMatch(ID);
  });
});
