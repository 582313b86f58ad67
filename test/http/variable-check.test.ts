import { expect, test } from '@jest/globals';
import { buildSchema, getOperationAST, parse } from 'graphql';
import { variableProblems } from '../../src/http/variable-check.ts';

const schema = buildSchema(`
  scalar BigInt
  enum Policy { REFUSE OVERWRITE }
  input Scope { workspace: ID! }
  input Import { name: String! scope: Scope serial: BigInt policy: Policy tags: [Int!] }
  type Query { run(input: Import!, count: Int): Int }
`);

function problems(variables: Record<string, unknown>, header = '$input: Import!'): readonly string[] {
  const operation = getOperationAST(parse(`query(${header}) { run }`));
  if (!operation) throw new Error('no operation');
  return variableProblems(schema, operation, variables);
}

test('variables that fit have no problem', () => {
  expect(
    problems({ input: { name: 'a', scope: { workspace: 'ws' }, serial: '1', policy: 'REFUSE' } }),
  ).toEqual([]);
  expect(problems({}, '$a: Int, $b: Int! = 3')).toEqual([]);
  expect(problems({ a: null }, '$a: Int')).toEqual([]);
});

test.each<[unknown, string]>([
  [undefined, 'Variable "$input" is invalid at "input": expected a value of type "Import!".'],
  [null, 'Variable "$input" is invalid at "input": expected a value of type "Import!".'],
  ['SECRET', 'Variable "$input" is invalid at "input": expected a value of type "Import!".'],
  [{}, 'Variable "$input" is invalid at "input": "Import" needs the field "name".'],
  [{ name: 'a', nam: 'SECRET' }, 'Variable "$input" is invalid at "input": "Import" has no field "nam".'],
  [{ name: 'a', 'SECRET=': 1 }, 'Variable "$input" is invalid at "input": "Import" has no such field.'],
  [{ name: 1 }, 'Variable "$input" is invalid at "input.name": expected a value of type "String!".'],
  [
    { name: 'a', policy: 'SECRET' },
    'Variable "$input" is invalid at "input.policy": expected one of REFUSE, OVERWRITE.',
  ],
  [
    { name: 'a', tags: [1, 'SECRET'] },
    'Variable "$input" is invalid at "input.tags.1": expected a value of type "Int!".',
  ],
  [
    { name: 'a', scope: { workspace: { SECRET: 1 } } },
    'Variable "$input" is invalid at "input.scope.workspace": expected a value of type "ID!".',
  ],
])('%j is described without its value', (input, problem) => {
  expect(problems({ input })).toEqual([problem]);
});

test('a list of wrong values is given up after the fifth', () => {
  let read = 0;
  const tags = {
    *[Symbol.iterator]() {
      for (; read < 1000; read++) yield 'SECRET';
    },
  };
  expect(problems({ input: { name: 'a', tags } })).toHaveLength(5);
  expect(read).toBe(5);
});
