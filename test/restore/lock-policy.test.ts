import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { buildArchive } from '../archive/support/build-archive.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import {
  type Backend,
  createCaller,
  openBackend,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { readStateRows } from '../support/state-rows.ts';
import { stateText } from '../terraform/state-text.ts';

let backend: Backend;
beforeAll(async () => {
  backend = await openBackend();
});
afterAll(() => backend.close());

const inDirectory = temporaryDirectory();

const EXCLUSIVE = { exclusiveLocks: true, coexistenceMode: 'strict' } as const;
const OPTIMISTIC = { exclusiveLocks: false, coexistenceMode: 'warn' } as const;
const MIXED = { exclusiveLocks: true, coexistenceMode: 'warn' } as const;

async function archiveWith(policy: typeof EXCLUSIVE | typeof OPTIMISTIC | typeof MIXED): Promise<string> {
  const path = inDirectory(`${policy.exclusiveLocks}-${policy.coexistenceMode}.klstate`);
  await buildArchive({ state: policy, versions: [{ serial: 1n, rawState: stateText('{}') }] }, path);
  return path;
}

test.each([
  ['auto', EXCLUSIVE, EXCLUSIVE],
  ['auto', OPTIMISTIC, OPTIMISTIC],
  ['auto', MIXED, MIXED],
  ['vanilla', OPTIMISTIC, EXCLUSIVE],
  ['vanilla', EXCLUSIVE, EXCLUSIVE],
  ['kilolock', EXCLUSIVE, OPTIMISTIC],
  ['kilolock', OPTIMISTIC, OPTIMISTIC],
] as const)(
  'an environment of default %s makes of a state with %j one with %j, and a difference is a warning',
  async (lockDefault, archived, restored) => {
    const caller = await createCaller(backend, { lockDefault });
    const path = await archiveWith(archived);
    const operation = await runImport(backend, caller, path);
    const { states } = await readStateRows(backend.database, stateIdOf(operation));
    expect(states).toMatchObject([
      { exclusive_locks: String(restored.exclusiveLocks), coexistence_mode: restored.coexistenceMode },
    ]);
    const warned = operation.report?.warnings.filter(({ code }) => code === 'LOCK_POLICY_CHANGED') ?? [];
    expect(warned).toHaveLength(archived === restored ? 0 : 1);
  },
);

test('an archived copy keeps it too, and a dry run says what will differ', async () => {
  const caller = await createCaller(backend, { lockDefault: 'kilolock' });
  const onConflict = { kind: 'ARCHIVED_COPY' } as const;
  const dry = await runImport(backend, caller, await archiveWith(EXCLUSIVE), { onConflict, dryRun: true });
  expect(dry.report?.warnings.map(({ code }) => code)).toContain('LOCK_POLICY_CHANGED');
  const free = await createCaller(backend);
  const operation = await runImport(backend, free, await archiveWith(MIXED), { onConflict });
  const { states } = await readStateRows(backend.database, stateIdOf(operation));
  expect(states).toMatchObject([{ exclusive_locks: 'true', coexistence_mode: 'warn' }]);
});

test('an overwrite leaves the lock policy of the state there, and says when it is not the archive’s', async () => {
  const caller = await createCaller(backend);
  await runImport(backend, caller, await archiveWith(OPTIMISTIC));
  const operation = await runImport(backend, caller, await archiveWith(EXCLUSIVE), {
    onConflict: { kind: 'OVERWRITE', confirmName: 'team/app', expectedCurrentSerial: 1n },
  });
  const { states } = await readStateRows(backend.database, stateIdOf(operation));
  expect(states).toMatchObject([{ exclusive_locks: 'false', coexistence_mode: 'warn' }]);
  expect(operation.report?.warnings).toContainEqual(
    expect.objectContaining({
      code: 'LOCK_POLICY_CHANGED',
      message: expect.stringMatching(/exclusive \(strict\).*optimistic \(warn\)/),
    }),
  );
});
