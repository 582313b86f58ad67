import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { buildSubgraphSchema, type GraphQLResolverMap } from '@apollo/subgraph';
import { describe, expect, test } from '@jest/globals';
import {
  execute,
  type GraphQLError,
  type GraphQLOutputType,
  type GraphQLSchema,
  isEnumType,
  isListType,
  isNonNullType,
  isObjectType,
  parse,
  validate,
} from 'graphql';
import { enforceAuthorization } from '../../src/auth/directives.ts';
import { fieldRequirements } from '../../src/auth/field-requirements.ts';
import { type Principal, SCOPES } from '../../src/auth/principal.ts';
import { PUBLIC_COORDINATES } from '../../src/auth/public-coordinates.ts';
import { type AccessPath, accessPaths, meets } from './support/access-paths.ts';

const PROJECT = resolve(import.meta.dirname, '../..');
const SDL = parse(readFileSync(resolve(PROJECT, 'schema.graphql'), 'utf8'));

/** The resolvers that ran, by coordinate; a reference resolver by its type. */
const calls: string[] = [];
const schema = guardedSchema();

/** The schema of the subgraph, guarded as the service guards it, over resolvers for every field that note they ran. */
function guardedSchema(): GraphQLSchema {
  const plain = buildSubgraphSchema([{ typeDefs: SDL }]);
  const resolvers: GraphQLResolverMap<unknown> = {};
  for (const type of Object.values(plain.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('_')) continue;
    const fields = Object.values(type.getFields()).filter(({ name }) => !name.startsWith('_'));
    const fieldResolvers = fields.map(({ name, type: returned }) => {
      const value = sampleOf(returned);
      return [name, noting(`${type.name}.${name}`, value)] as const;
    });
    const isEntity = type.astNode?.directives?.some(({ name }) => name.value === 'key');
    resolvers[type.name] = {
      ...Object.fromEntries(fieldResolvers),
      ...(isEntity && { __resolveReference: noting(type.name, {}) }),
    };
  }
  return enforceAuthorization(buildSubgraphSchema([{ typeDefs: SDL, resolvers }]), {
    publicCoordinates: PUBLIC_COORDINATES,
  });
}

function noting<Value>(coordinate: string, value: Value): () => Value {
  return () => {
    calls.push(coordinate);
    return value;
  };
}

function sampleOf(type: GraphQLOutputType): unknown {
  if (isNonNullType(type)) return sampleOf(type.ofType);
  if (isListType(type)) return [sampleOf(type.ofType)];
  if (isEnumType(type)) return type.getValues()[0]?.name;
  if (isObjectType(type)) return {};
  return type.toString() === 'Boolean' ? true : 1;
}

function caller(scopes: ReadonlySet<string>): Principal {
  const noEnvironment = { workspace: null, environment: null, statePatterns: null };
  return { subject: 'user-1', actor: 'user-1', scopes, ...noEnvironment };
}

async function take({ document }: AccessPath, principal: Principal | null) {
  calls.length = 0;
  const { errors = [] } = await execute({ schema, document, contextValue: { principal } });
  return { codes: errors.map((error: GraphQLError) => error.extensions.code), calls: [...calls] };
}

/** Nobody, somebody with none of the scopes, with each one, with all but each one, and with all. */
const CALLERS: [name: string, scopes: ReadonlySet<string> | null][] = [
  ['anonymous', null],
  ['no scope', new Set()],
  ['a scope of another service', new Set(['openid'])],
  ...SCOPES.map((scope): [string, ReadonlySet<string>] => [scope, new Set([scope])]),
  ...SCOPES.map((scope): [string, ReadonlySet<string>] => [
    `all but ${scope}`,
    new Set(SCOPES.filter((other) => other !== scope)),
  ]),
  ['all scopes', new Set(SCOPES)],
];

const COORDINATES = [...fieldRequirements(schema)]
  .filter(([, requirement]) => requirement !== null)
  .map(([coordinate]) => coordinate);

/** What every credential is told of itself. */
const ANY_CREDENTIAL = /^(?:Query\.stateArchiveCaller$|StateArchiveCaller\.)/;

function pathsTo(coordinate: string): AccessPath[] {
  const [typeName = '', fieldName = ''] = coordinate.split('.');
  return accessPaths(schema, SDL, typeName, fieldName);
}

/** What `checkPaths` found, to be printed. */
const checked = new Map<string, ReadonlyMap<string, number>>();

/** Takes every path as every caller, and returns for each caller in how many of them the field was resolved. */
async function checkPaths(coordinate: string, paths: readonly AccessPath[]): Promise<Map<string, number>> {
  const resolved = new Map<string, number>();
  for (const [name, scopes] of CALLERS) {
    resolved.set(name, 0);
    for (const path of paths) {
      const stop = path.steps.findIndex(
        (step) => step.demands.length > 0 && (scopes === null || !meets(step, scopes)),
      );
      const permitted = stop === -1 ? path.steps : path.steps.slice(0, stop);
      const outcome = await take(path, scopes === null ? null : caller(scopes));
      expect([name, path.name, outcome]).toEqual([
        name,
        path.name,
        {
          codes: stop === -1 ? [] : [scopes === null ? 'UNAUTHENTICATED' : 'FORBIDDEN'],
          calls: permitted.map((step) => step.coordinate),
        },
      ]);
      if (stop === -1) resolved.set(name, (resolved.get(name) ?? 0) + 1);
    }
  }
  checked.set(coordinate, resolved);
  return resolved;
}

describe('the access matrix', () => {
  test.each(COORDINATES)(
    '%s is resolved for those who may, and costs others no resolver, by every path',
    async (coordinate) => {
      const paths = pathsTo(coordinate);
      expect(paths.map(({ name }) => name)).toEqual(expect.arrayContaining(['alias', 'fragment']));
      for (const { document } of paths) expect(validate(schema, document)).toEqual([]);
      const resolved = await checkPaths(coordinate, paths);
      expect(resolved.get('anonymous')).toBe(0);
      const ofNoScope = ANY_CREDENTIAL.test(coordinate) ? paths.length : 0;
      expect(resolved.get('no scope')).toBe(ofNoScope);
      expect(resolved.get('a scope of another service')).toBe(ofNoScope);
      expect(resolved.get('all scopes')).toBe(paths.length);
    },
  );

  test('reaches into every entity by each of its keys', () => {
    const names = new Set(COORDINATES.flatMap((coordinate) => pathsTo(coordinate).map(({ name }) => name)));
    expect([...names]).toEqual(
      expect.arrayContaining([
        '`StateArchive` by id',
        '`StateArchive` by workspaceId, environmentId, name',
        '`State` by id',
        '`StateArchiveOperation` by id',
      ]),
    );
  });

  test('is printed in docs/authorization.md (UPDATE_DOCS=1 rewrites it)', async () => {
    const file = resolve(PROJECT, 'docs/authorization.md');
    const text = await readFile(file, 'utf8');
    const table = await matrixTable();
    const current = text.replace(
      /(<!-- access matrix: .*? -->\n).*?(\n<!-- end of access matrix -->)/s,
      (_all, start: string, end: string) => `${start}\n${table}${end}`,
    );
    if (process.env.UPDATE_DOCS === '1') await writeFile(file, current);
    else expect(text).toBe(current);
    expect(current).toContain('| `StateArchiveVersion.rawState` | no |');
  });
});

async function matrixTable(): Promise<string> {
  const columns = ['anonymous', 'no scope', ...SCOPES, 'all scopes'];
  const rows: string[] = [];
  for (const coordinate of COORDINATES) {
    const paths = pathsTo(coordinate);
    const resolved = checked.get(coordinate) ?? (await checkPaths(coordinate, paths));
    const cells = columns.map((column) => {
      const count = resolved.get(column) ?? 0;
      return count === 0 ? 'no' : count === paths.length ? 'yes' : `${count}`;
    });
    rows.push(`| \`${coordinate}\` | ${cells.join(' | ')} | ${paths.length} |`);
  }
  return [
    `| Field | ${columns.map((column) => (column.startsWith('state.') ? `\`${column}\`` : column)).join(' | ')} | paths |`,
    `|${' --- |'.repeat(columns.length + 2)}`,
    ...rows,
    '',
  ].join('\n');
}
