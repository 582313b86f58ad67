import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { findNamespace, type NamespaceSelector } from '../../src/history/namespace.ts';
import type { Caller } from '../../src/history/states.ts';
import {
  findOperations,
  listOperations,
  type OperationRecord,
} from '../../src/operations/operation-records.ts';
import { loadTerraformHistory } from '../support/fixtures.ts';
import {
  type Backend,
  createCaller,
  createEnvironment,
  openBackend,
  runExport,
  stateIdOf,
  withPrincipal,
} from './support/backend.ts';
import { post } from './support/histories.ts';

const WORKSPACE = 'ws_000000000000';
const DEFAULT = 'env_000000000000';
const NAMES = {
  bare: 'network',
  ofDefault: `${WORKSPACE}/${DEFAULT}/network`,
  ofOther: `${WORKSPACE}/env_other/network`,
} as const;

let backend: Backend;
let selfHosted: Caller;
/** The exports of the three states, all asked for by the self-hosted caller. */
let exports: Record<keyof typeof NAMES, OperationRecord>;

/** Somebody who may do everything in an environment of the self-hosted workspace; null: the self-hosted caller. */
async function callerIn(selector: NamespaceSelector): Promise<Caller> {
  const namespace = await findNamespace(backend.database.for('record'), selector);
  if (namespace === null) throw new Error('The environment is not there.');
  const like = await createCaller(backend);
  const own = selector ?? { workspace: null, environment: null };
  return withPrincipal({ ...like, namespace }, own);
}

beforeAll(async () => {
  backend = await openBackend();
  await createEnvironment(backend, WORKSPACE, { environment: 'env_other' });
  selfHosted = await callerIn(null);
  const { database } = backend;
  const [document = ''] = loadTerraformHistory().map((version) => version.document);
  const exported: [string, OperationRecord][] = [];
  for (const [key, name] of Object.entries(NAMES)) {
    await post(database, selfHosted, name, document);
    exported.push([key, await runExport(backend, selfHosted, name)]);
  }
  exports = Object.fromEntries(exported) as typeof exports;
});
afterAll(() => backend.close());

/** The labels under which a caller sees the three operations; null for one that is not visible. */
async function labelsSeenBy(caller: Caller) {
  const all = Object.entries(exports);
  const found = await findOperations(
    backend.database.for('record'),
    caller,
    all.map(([, { id }]) => id),
  );
  const byState = await listOperations(
    backend.database.for('record'),
    caller,
    all.map(([, operation]) => stateIdOf(operation)),
    { after: null, limit: 10 },
  );
  expect([...byState.values()].flat().map(({ id }) => id)).toEqual(expect.arrayContaining([...found.keys()]));
  expect([...byState.values()].flat()).toHaveLength(found.size);
  return Object.fromEntries(all.map(([key, { id }]) => [key, found.get(id)?.label ?? null]));
}

test('operations of the self-hosted workspace belong to the environment that the state’s stored name says', async () => {
  expect(await labelsSeenBy(await callerIn({ workspace: WORKSPACE, environment: DEFAULT }))).toEqual({
    bare: null,
    ofDefault: 'network',
    ofOther: null,
  });
  expect(await labelsSeenBy(await callerIn({ workspace: WORKSPACE, environment: 'env_other' }))).toEqual({
    bare: null,
    ofDefault: null,
    ofOther: 'network',
  });
});

test('the self-hosted caller sees them all, by their stored names, as its state patterns say', async () => {
  expect(await labelsSeenBy(selfHosted)).toEqual(NAMES);
  const confined = withPrincipal(selfHosted, { statePatterns: [`${WORKSPACE}/*`] });
  expect(await labelsSeenBy(confined)).toEqual({ ...NAMES, bare: null });
});

test('a caller of another workspace sees none of them', async () => {
  expect(await labelsSeenBy(await createCaller(backend))).toEqual({
    bare: null,
    ofDefault: null,
    ofOther: null,
  });
});
