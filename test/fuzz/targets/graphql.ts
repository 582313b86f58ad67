import { createSchema } from '../../../src/graphql/schema.ts';
import { postHistory } from '../../graphql/support/states.ts';
import { type Choices, choices } from '../../support/choices.ts';
import { buildRequest } from '../../support/graphql-requests.ts';
import { startTestService } from '../../support/service.ts';
import type { FuzzTarget } from '../target.ts';
import { ServiceAnswers } from './service-answers.ts';

/** A GraphQL request and whose it is. Ids of what is there are written as {@link STATE_ID}. */
interface GraphqlInput {
  readonly query: string;
  readonly variables: unknown;
  readonly scopes: readonly string[] | null;
}

const STATE_ID = 'THE-STATE-ID';
const LABEL = 'fuzz/app';
const CREDENTIALS = [
  ['state.read', 'state.export', 'state.import', 'state.raw.read'],
  ['state.read'],
  ['state.import'],
  ['state.support', 'state.read'],
  null,
];
const PIECES = [
  '{',
  '}',
  '(',
  ')',
  '$',
  '...',
  '"',
  '"""',
  '\\',
  ':',
  '@',
  '!',
  'null',
  '\u0000',
  'on',
  '#',
  '[',
  ',',
];
/** The most statements a request causes, whatever it asks for: they grow with the request and not with the rows. */
const MAX_STATEMENTS = 400;

const schema = createSchema({ gatewayProofRequired: false });

function build(choice: Choices): GraphqlInput {
  const scopes = choice.of(CREDENTIALS);
  const { query, variables } = buildRequest(schema, choice, {
    plain: false,
    fitting: choice.once(2),
    scalars: {
      String: [LABEL, 'a', '', '\u0000', '\u202e', '{"version": 4}', `${LABEL}/${'x'.repeat(1100)}`],
      ID: [STATE_ID, 'ws_000000000000', 'env_000000000000', '', '00000000-0000-4000-8000-000000000000'],
      _Any: [
        { __typename: 'StateArchive', id: STATE_ID },
        { __typename: 'State', id: STATE_ID },
        { __typename: 'StateArchiveOperation', id: STATE_ID },
        { __typename: 'StateArchive', id: { a: [] } },
        { __typename: 'Query' },
        { __typename: '__proto__' },
        { __typename: 7 },
        {},
        null,
        7,
      ],
      BigInt: ['1', '2', '-1', '9223372036854775808', '1e3', 7, 2 ** 60],
    },
  });
  return {
    query: choice.once(6) ? damaged(query, choice) : query,
    variables: choice.once(20) ? choice.of([null, [], 'x', 7]) : variables,
    scopes,
  };
}

function damaged(query: string, choice: Choices): string {
  let text = query;
  for (const _ of Array.from({ length: 1 + choice.below(3) })) {
    const at = choice.below(text.length + 1);
    const cut = choice.below(4);
    text = text.slice(0, at) + choice.of(['', ...PIECES]) + text.slice(at + cut);
  }
  return text;
}

/** GraphQL documents with variables: never INTERNAL, nothing logged as an error, and no more statements than bounded. */
export const graphqlTarget: FuzzTarget<GraphqlInput> = {
  name: 'graphql',
  inputs: choices(150).map(build),
  encode: (input) => Buffer.from(`${JSON.stringify(input, null, 2)}\n`),
  decode: (file) => JSON.parse(file.toString()),
  runsInSuite: 40,
  async open() {
    const service = await startTestService({ MAX_OPERATIONS_PER_PRINCIPAL: '20', LOG_LEVEL: 'info' });
    const { stateId } = await postHistory(service.database, null, LABEL, [
      { resources: { a: '1' }, outputs: { o: '1' } },
      { resources: { a: '2', b: '1' } },
    ]);
    const answers = new ServiceAnswers(service);
    return {
      async check({ query, variables, scopes }) {
        const token = scopes === null ? null : await service.token({ scopes });
        const body = JSON.stringify({ query, variables }).replaceAll(STATE_ID, stateId);
        let status = 0;
        let text = '';
        const statements = await service.statementsOf(async () => {
          const response = await fetch(`${service.url}/graphql`, {
            method: 'POST',
            headers: {
              'content-type': 'application/json',
              ...(token !== null && { authorization: `Bearer ${token}` }),
            },
            body,
          });
          status = response.status;
          text = await response.text();
        });
        answers.check(status, text);
        if (statements.length > MAX_STATEMENTS) throw new Error(`It took ${statements.length} statements.`);
      },
      close: () => service.stop(),
    };
  },
};
