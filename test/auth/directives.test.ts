import { buildSubgraphSchema, type GraphQLResolverMap } from '@apollo/subgraph';
import { describe, expect, test } from '@jest/globals';
import { type GraphQLSchema, graphql, parse } from 'graphql';
import { enforceAuthorization } from '../../src/auth/directives.ts';
import { fieldRequirements, SchemaError } from '../../src/auth/field-requirements.ts';
import type { Principal } from '../../src/auth/principal.ts';

const LINK = `extend schema @link(
  url: "https://specs.apollo.dev/federation/v2.9"
  import: ["@key", "@shareable", "@authenticated", "@requiresScopes"]
)`;

const PUBLIC = ['Query._service', '_Service.sdl'];
const PUBLIC_WITH_ENTITIES = [...PUBLIC, 'Query._entities'];

function caller(...scopes: string[]): Principal {
  return {
    subject: 'user-1',
    actor: 'user-1',
    scopes: new Set(scopes),
    workspace: null,
    environment: null,
    statePatterns: null,
  };
}

function unguarded(sdl: string, resolvers: GraphQLResolverMap<unknown> = {}, link = LINK): GraphQLSchema {
  return buildSubgraphSchema([{ typeDefs: parse(`${link}\n${sdl}`), resolvers }]);
}

function refusalOf(
  sdl: string,
  options: { link?: string; publicCoordinates?: string[] } = {},
): readonly string[] {
  const schema = unguarded(sdl, {}, options.link);
  try {
    enforceAuthorization(schema, { publicCoordinates: options.publicCoordinates ?? PUBLIC });
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    for (const problem of error.problems) expect(error.message).toContain(problem);
    return error.problems;
  }
  throw new Error('the schema was accepted');
}

/** A schema that covers every way to reach a field, and the names of the resolvers that ran. */
function library() {
  const calls: string[] = [];
  const ran = <Value>(name: string, value: Value): Value => {
    calls.push(name);
    return value;
  };
  const book = { __typename: 'Book', id: 'book-1', title: 'Dune', secret: 'plot', shelf: { number: 7 } };
  const diary = { __typename: 'Diary', id: 'diary-1', title: 'Mine', entries: ['one'] };
  const schema = unguarded(
    `
    type Query {
      book: Book @authenticated
      shelf: Shelf @authenticated
      either: Book @requiresScopes(scopes: [["one", "two"], ["three"]])
      clearance: Clearance @authenticated
      level: Level @authenticated
      signedIn: String @authenticated
      open: String
    }
    type Mutation {
      burn: String @requiresScopes(scopes: [["book.burn"]])
    }
    scalar Clearance @requiresScopes(scopes: [["clearance"]])
    enum Level @requiresScopes(scopes: [["level"]]) { HIGH }
    type Book @key(fields: "id") @requiresScopes(scopes: [["book.read"]]) {
      id: ID!
      title: String!
      secret: String @requiresScopes(scopes: [["book.secret"]])
      shelf: Shelf
    }
    type Diary @key(fields: "id") @requiresScopes(scopes: [["diary.read"]]) {
      id: ID!
      title: String!
      entries: [String!]!
    }
    type Shelf @requiresScopes(scopes: [["shelf.read"]]) { number: Int! }
    `,
    {
      Query: {
        book: () => ran('Query.book', book),
        shelf: () => ran('Query.shelf', book.shelf),
        either: () => ran('Query.either', book),
        clearance: () => ran('Query.clearance', 'top'),
        level: () => ran('Query.level', 'HIGH'),
        signedIn: () => ran('Query.signedIn', 'yes'),
        open: () => ran('Query.open', 'open'),
      },
      Mutation: { burn: () => ran('Mutation.burn', 'burnt') },
      Book: {
        __resolveReference: ({ id }: { id: string }) => ran('Book.__resolveReference', { ...book, id }),
        secret: () => ran('Book.secret', 'plot'),
        shelf: () => ran('Book.shelf', book.shelf),
      },
      Diary: { __resolveReference: () => ran('Diary.__resolveReference', diary) },
    },
  );
  enforceAuthorization(schema, { publicCoordinates: [...PUBLIC_WITH_ENTITIES, 'Query.open'] });

  async function ask(
    principal: Principal | null,
    source: string,
    variableValues: Record<string, unknown> = {},
  ) {
    calls.length = 0;
    const { data, errors = [] } = await graphql({
      schema,
      source,
      variableValues,
      contextValue: { principal },
    });
    return {
      data: JSON.parse(JSON.stringify(data ?? null)) as unknown,
      denials: errors.map((error) => `${error.path?.join('.')}: ${error.extensions.code}`),
      errors,
      calls: [...calls],
    };
  }
  return { schema, ask };
}

describe('a denied field', () => {
  test('costs no resolver, and says UNAUTHENTICATED to a caller without a credential', async () => {
    const { data, errors, denials, calls } = await library().ask(null, '{ book { title } open }');
    expect(data).toEqual({ book: null, open: 'open' });
    expect(denials).toEqual(['book: UNAUTHENTICATED']);
    expect(errors[0]?.message).toBe('Authentication is required.');
    expect(calls).toEqual(['Query.open']);
  });

  test('costs no resolver, and says FORBIDDEN and which scopes would do to one without the scopes', async () => {
    const { data, errors, denials, calls } = await library().ask(caller('diary.read'), '{ book { title } }');
    expect(data).toEqual({ book: null });
    expect(denials).toEqual(['book: FORBIDDEN']);
    expect(errors[0]?.message).toBe('Not permitted.');
    expect(errors[0]?.extensions.requiredScopes).toEqual([['book.read']]);
    expect(calls).toEqual([]);
  });

  test('is denied as a mutation before anything happens', async () => {
    const { denials, calls } = await library().ask(caller('book.read'), 'mutation { burn }');
    expect(denials).toEqual(['burn: FORBIDDEN']);
    expect(calls).toEqual([]);
  });

  test('does not take its permitted neighbours with it', async () => {
    const { data, denials, calls } = await library().ask(
      caller('book.read'),
      '{ book { title secret shelf { number } } }',
    );
    expect(data).toEqual({ book: { title: 'Dune', secret: null, shelf: null } });
    expect(denials).toEqual(['book.secret: FORBIDDEN', 'book.shelf: FORBIDDEN']);
    expect(calls).toEqual(['Query.book']);
  });

  test.each([
    ['under an alias', '{ book { harmless: secret } }', 'book.harmless'],
    ['in a named fragment', '{ book { ...F } } fragment F on Book { secret }', 'book.secret'],
    ['in an inline fragment', '{ book { ... on Book { secret } } }', 'book.secret'],
    ['behind a directive', '{ book { secret @include(if: true) } }', 'book.secret'],
  ])('is denied %s', async (_name, source, path) => {
    const { denials, calls } = await library().ask(caller('book.read'), source);
    expect(denials).toEqual([`${path}: FORBIDDEN`]);
    expect(calls).toEqual(['Query.book']);
  });

  test('is denied to a context that forgot its principal', async () => {
    const { schema } = library();
    for (const contextValue of [{}, undefined]) {
      const result = await graphql({ schema, source: '{ signedIn clearance }', contextValue });
      expect(result.data).toEqual({ signedIn: null, clearance: null });
      expect(result.errors).toHaveLength(2);
    }
  });
});

describe('a permitted field', () => {
  test('is resolved, by the default resolver too', async () => {
    const source = '{ book { id title secret shelf { number } } }';
    const { data, denials } = await library().ask(caller('book.read', 'book.secret', 'shelf.read'), source);
    expect(denials).toEqual([]);
    expect(data).toEqual({ book: { id: 'book-1', title: 'Dune', secret: 'plot', shelf: { number: 7 } } });
  });

  test('needs a credential alone, with whatever scopes, when that is all it demands', async () => {
    const { ask } = library();
    expect((await ask(caller(), '{ signedIn }')).data).toEqual({ signedIn: 'yes' });
    expect((await ask(null, '{ signedIn }')).denials).toEqual(['signedIn: UNAUTHENTICATED']);
  });

  test.each<[scopes: string[], permitted: boolean]>([
    [['one', 'two', 'book.read'], true],
    [['three', 'book.read'], true],
    [['one', 'book.read'], false],
    [['two', 'book.read'], false],
    [['one', 'two'], false],
    [['one two', 'book.read'], false],
    [[], false],
  ])(
    'needs all scopes of one set of its own, and those of its type: %j gives %j',
    async (scopes, permitted) => {
      const { denials, calls } = await library().ask(caller(...scopes), '{ either { id } }');
      expect(denials).toEqual(permitted ? [] : ['either: FORBIDDEN']);
      expect(calls).toEqual(permitted ? ['Query.either'] : []);
    },
  );

  test.each([
    ['clearance', 'clearance'],
    ['level', 'level'],
  ])('needs what its scalar or enum demands: %s', async (field, scope) => {
    const { ask } = library();
    expect((await ask(caller(), `{ ${field} }`)).calls).toEqual([]);
    expect((await ask(caller(scope), `{ ${field} }`)).denials).toEqual([]);
  });
});

describe('an entity asked for by reference', () => {
  const SOURCE = `query ($representations: [_Any!]!) {
    _entities(representations: $representations) {
      __typename
      ... on Book { id title secret }
      ... on Diary { entries }
    }
  }`;
  const book = { __typename: 'Book', id: 'book-9' };
  const diary = { __typename: 'Diary', id: 'diary-1' };

  test('is denied item by item, before its reference resolver', async () => {
    const { data, denials, calls } = await library().ask(caller('book.read', 'book.secret'), SOURCE, {
      representations: [book, diary, { ...book, id: 'book-10' }],
    });
    expect(data).toEqual({
      _entities: [
        { __typename: 'Book', id: 'book-9', title: 'Dune', secret: 'plot' },
        null,
        { __typename: 'Book', id: 'book-10', title: 'Dune', secret: 'plot' },
      ],
    });
    expect(denials).toEqual(['_entities.1: FORBIDDEN']);
    expect(calls.filter((call) => call.startsWith('Diary'))).toEqual([]);
  });

  test('costs no resolver without a credential, whatever is asked of it', async () => {
    const { ask } = library();
    for (const source of [
      SOURCE,
      'query ($representations: [_Any!]!) { x: _entities(representations: $representations) { __typename } }',
    ]) {
      const { denials, calls } = await ask(null, source, { representations: [book, diary] });
      expect(denials.map((denial) => denial.split(': ')[1])).toEqual(['UNAUTHENTICATED', 'UNAUTHENTICATED']);
      expect(calls).toEqual([]);
    }
  });

  test('is guarded field by field as anywhere', async () => {
    const { data, denials } = await library().ask(caller('book.read'), SOURCE, { representations: [book] });
    expect(data).toEqual({ _entities: [{ __typename: 'Book', id: 'book-9', title: 'Dune', secret: null }] });
    expect(denials).toEqual(['_entities.0.secret: FORBIDDEN']);
  });

  test('does not become another type by what the caller sends', async () => {
    const { data, calls } = await library().ask(caller('shelf.read'), SOURCE, {
      representations: [{ __typename: 'Shelf', number: 1 }, { __typename: 'Query' }],
    });
    expect(data).toEqual({ _entities: [null, null] });
    expect(calls).toEqual([]);
  });

  test('fails alone when its reference resolver throws', async () => {
    const schema = unguarded(
      `type Query { a: String @authenticated }
       type A @key(fields: "id") @authenticated { id: ID! }`,
      {
        A: {
          __resolveReference: (reference: { id: string }) => {
            if (reference.id === 'bad') throw new Error('thrown, not rejected');
            return reference;
          },
        },
      },
    );
    enforceAuthorization(schema, { publicCoordinates: PUBLIC_WITH_ENTITIES });
    const { data } = await graphql({
      schema,
      source:
        '{ _entities(representations: [{ __typename: "A", id: "bad" }, { __typename: "A", id: "good" }]) { ... on A { id } } }',
      contextValue: { principal: caller() },
    });
    expect(JSON.parse(JSON.stringify(data))).toEqual({ _entities: [null, { id: 'good' }] });
  });
});

describe('what only the gateway may ask', () => {
  const REFERENCE = '_entities(representations: [{ __typename: "A", id: "1" }]) { __typename }';

  function guardedBehindGateway(gatewayProofRequired: boolean) {
    let references = 0;
    const schema = unguarded(
      `type Query { a: A @authenticated }
       type A @key(fields: "id") @authenticated { id: ID! }`,
      {
        Query: { a: () => ({ id: '1' }) },
        A: {
          __resolveReference: (reference: object) => {
            references += 1;
            return reference;
          },
        },
      },
    );
    enforceAuthorization(schema, { publicCoordinates: PUBLIC_WITH_ENTITIES, gatewayProofRequired });
    return async (source: string, context: object) => {
      references = 0;
      const { data, errors = [] } = await graphql({ schema, source, contextValue: context });
      return {
        data: JSON.parse(JSON.stringify(data ?? null)) as unknown,
        problems: errors.map(({ message, extensions }) => `${extensions.code}: ${message}`),
        references,
      };
    };
  }

  test.each([
    ['the SDL', '{ _service { sdl } }'],
    ['the SDL under an alias', '{ x: _service { sdl } }'],
    ['an entity', `{ ${REFERENCE} }`],
    ['an entity in a fragment', `{ ...F } fragment F on Query { ${REFERENCE} }`],
  ])('is refused to others, whatever their credential: %s', async (_name, source) => {
    const ask = guardedBehindGateway(true);
    for (const fromGateway of [false, undefined, 'true', 1]) {
      const context = { principal: caller(), fromGateway };
      expect(await ask(source, context)).toEqual({
        data: null,
        problems: ['FORBIDDEN: Only the gateway may ask this.'],
        references: 0,
      });
    }
    expect((await ask(source, { principal: caller(), fromGateway: true })).problems).toEqual([]);
  });

  test('still demands of the gateway’s callers what the type demands', async () => {
    const { problems, references } = await guardedBehindGateway(true)(`{ ${REFERENCE} }`, {
      principal: null,
      fromGateway: true,
    });
    expect(problems).toEqual(['UNAUTHENTICATED: Authentication is required.']);
    expect(references).toBe(0);
  });

  test('leaves every other field to anyone with a credential', async () => {
    const { data } = await guardedBehindGateway(true)('{ a { id } }', { principal: caller() });
    expect(data).toEqual({ a: { id: '1' } });
  });

  test('is answered to anyone where no proof is required', async () => {
    const { problems } = await guardedBehindGateway(false)('{ _service { sdl } }', { principal: null });
    expect(problems).toEqual([]);
  });
});

describe('what a field demands', () => {
  test('is the conjunction of every directive that covers it, in its shortest form', () => {
    const requirements = fieldRequirements(
      unguarded(`
        type Query { a: A @requiresScopes(scopes: [["read"], ["write"]]) }
        type A @requiresScopes(scopes: [["read"], ["write"], ["admin"]]) {
          plain: String
          signedIn: String @authenticated
          both: String @requiresScopes(scopes: [["raw"]])
          narrower: String @requiresScopes(scopes: [["write"]])
        }
      `),
    );
    expect(Object.fromEntries([...requirements].filter(([coordinate]) => !coordinate.includes('_')))).toEqual(
      {
        'Query.a': [['read'], ['write']],
        'A.plain': [['read'], ['write'], ['admin']],
        'A.signedIn': [['read'], ['write'], ['admin']],
        'A.both': [
          ['raw', 'read'],
          ['raw', 'write'],
          ['raw', 'admin'],
        ],
        'A.narrower': [['write']],
      },
    );
  });

  test('includes directives on extensions', () => {
    const requirements = fieldRequirements(
      unguarded(`
        type Query { a: A @authenticated }
        type A { one: String }
        extend type A @requiresScopes(scopes: [["a.read"]]) { two: String @requiresScopes(scopes: [["a.two"]]) }
      `),
    );
    expect(requirements.get('Query.a')).toEqual([['a.read']]);
    expect(requirements.get('A.one')).toEqual([['a.read']]);
    expect(requirements.get('A.two')).toEqual([['a.two', 'a.read']]);
  });

  test.each(['[]', '[[]]', '[["a"], []]', '[[""]]', '[[1]]', '[["a", null]]', '["a"]', '"a"'])(
    'is refused when it cannot have been meant: %s',
    (scopes) => {
      expect(refusalOf(`type Query { a: String @requiresScopes(scopes: ${scopes}) }`)).toEqual([
        'Query.a: @requiresScopes needs a list of lists of scopes, none of them empty',
      ]);
    },
  );
});

describe('the start is refused', () => {
  test('when a field demands nothing and is not public, naming every one', () => {
    const sdl = `
      type Query { a: A @authenticated b: String }
      type A { one: String two: String @authenticated }
      type Unreached { three: String }
    `;
    expect(refusalOf(sdl)).toEqual(
      ['Query.b', 'A.one', 'Unreached.three'].map(
        (coordinate) => `${coordinate}: demands nothing and is not among the public coordinates`,
      ),
    );
  });

  test('when the machinery of federation is not among the public coordinates', () => {
    const problems = refusalOf('type Query { a: String @authenticated }', { publicCoordinates: [] });
    expect(problems.map((problem) => problem.split(':')[0]).sort()).toEqual([
      'Query._service',
      '_Service.sdl',
    ]);
  });

  test('when a public coordinate is not in the schema', () => {
    const publicCoordinates = [...PUBLIC, 'Query.typo', 'PageInfo'];
    expect(refusalOf('type Query { a: String @authenticated }', { publicCoordinates })).toEqual([
      'Query.typo: is public and not in the schema',
      'PageInfo: is public and not in the schema',
    ]);
  });

  test('when an entity has no reference resolver', () => {
    const problems = refusalOf(
      `type Query { a: A @authenticated }
       type A @key(fields: "id") @authenticated { id: ID! }`,
      { publicCoordinates: PUBLIC_WITH_ENTITIES },
    );
    expect(problems).toEqual(['A: is an entity without a reference resolver']);
  });

  test.each([
    [
      'an interface',
      'Named',
      'interface Named { a: String } type A implements Named @authenticated { a: String }',
    ],
    ['an interface with a key', 'Named', 'interface Named @key(fields: "a") @authenticated { a: String }'],
    ['a union', 'Found', 'union Found = A type A @authenticated { a: String }'],
    ['a subscription', 'Subscription', 'type Subscription @authenticated { a: String }'],
  ])('when there is %s, which nothing guards', (_what, name, sdl) => {
    expect(refusalOf(`type Query { a: String @authenticated } ${sdl}`)).toEqual([
      `${name}: interfaces, unions and subscriptions are not guarded by this service`,
    ]);
  });

  const FEDERATION = 'https://specs.apollo.dev/federation/v2.9';
  const OWN_DIRECTIVES = `
    directive @authenticated on FIELD_DEFINITION | OBJECT
    directive @requiresScopes(scopes: [[String!]!]!) on FIELD_DEFINITION | OBJECT
  `;

  test.each<[name: string, link: string, sdl: string, problem: string]>([
    [
      'is renamed',
      `extend schema @link(url: "${FEDERATION}", import: [{ name: "@authenticated", as: "@auth" }])`,
      'type Query { a: String @auth }',
      'schema: {"name":"@authenticated","as":"@auth"} is imported under another name; import it under its own',
    ],
    [
      'is renamed, beside one of our own under its name',
      `extend schema @link(url: "${FEDERATION}", import: [{ name: "@requiresScopes", as: "@scopes" }])`,
      `${OWN_DIRECTIVES} type Query { a: String @requiresScopes(scopes: [["a"]]) }`,
      'schema: @requiresScopes is used and not imported',
    ],
    [
      'is not imported and used by its long name',
      `extend schema @link(url: "${FEDERATION}", import: ["@key"])`,
      'type Query { a: String @federation__authenticated }',
      'schema: @federation__authenticated is used; import the directive and use its own name',
    ],
    [
      'is our own and not the one of the specification',
      `extend schema @link(url: "${FEDERATION}", import: ["@key"])`,
      `${OWN_DIRECTIVES} type Query { a: String @authenticated }`,
      'schema: @authenticated is used and not imported',
    ],
    [
      'is the new name of something else',
      `extend schema @link(url: "${FEDERATION}", import: [{ name: "@inaccessible", as: "@authenticated" }])`,
      'type Query { a: String @authenticated }',
      'schema: @authenticated is used and not imported',
    ],
    [
      'comes without a link to federation',
      'extend schema @link(url: "https://example.com/other/v1.0")',
      `${OWN_DIRECTIVES} type Query { a: String @authenticated }`,
      'schema: no @link to https://specs.apollo.dev/federation/, so that the router would know none of the directives',
    ],
    [
      'is @policy, which is not enforced',
      `extend schema @link(url: "${FEDERATION}", import: ["@authenticated", "@policy"])`,
      'type Query { a: String @authenticated @policy(policies: [["p"]]) }',
      'schema: @policy is not enforced by this service',
    ],
    [
      'is @policy by its long name',
      `extend schema @link(url: "${FEDERATION}", import: ["@authenticated"])`,
      'type Query { a: String @authenticated @federation__policy(policies: [["p"]]) }',
      'schema: @federation__policy is used; import the directive and use its own name',
    ],
  ])('when a directive %s', (_name, link, sdl, problem) => {
    expect(refusalOf(sdl, { link })).toContain(problem);
  });

  test('when the schema has no link and no definition at all', () => {
    expect(() => unguarded('type Query { a: String @authenticated }', {}, '')).toThrow('@authenticated');
  });
});
