import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Caller } from '../../src/history/states.ts';
import type { OperationRecord } from '../../src/operations/operation-records.ts';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import { readStateDocument } from '../../src/terraform/document.ts';
import { projectResources } from '../../src/terraform/projection.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  runExport,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { readStateRows, type StateRows } from '../support/state-rows.ts';
import { historyDigestOf } from './support/histories.ts';
import { projectHistory, writeHistory } from './support/kilolock-writes.ts';
import { writePlainTar } from './support/plain-tar.ts';
import { type RandomHistory, randomHistory } from './support/random-history.ts';

interface Place {
  readonly backend: Backend;
  readonly caller: Caller;
}

/** Three backends: where a history was made, where it is restored, and where it is restored from there. */
let places: [Place, Place, Place];
beforeAll(async () => {
  const open = async () => {
    const backend = await openBackend();
    return { backend, caller: await createCaller(backend) };
  };
  places = await Promise.all([open(), open(), open()]);
});
afterAll(() => Promise.all(places.map(({ backend }) => backend.close())));

const inDirectory = temporaryDirectory();

interface Copy {
  readonly rows: StateRows;
  readonly digest: string;
  readonly operation: OperationRecord;
}

let made = 0;

/** Makes a history and takes it from backend to backend; says what each of them holds of it. */
async function travel(history: RandomHistory, hasResourceRows: boolean) {
  const [first, second, third] = places;
  made += 1;
  const label = `random/${made}`;
  const { database } = first.backend;
  const { tenantId, namePrefix } = first.caller.namespace;
  const stateId = await writeHistory(database, history, { tenantId, name: namePrefix + label });
  if (hasResourceRows) await projectHistory(database, history, { tenantId, stateId });
  const source = {
    rows: await readStateRows(database, stateId),
    digest: await historyDigestOf(database, stateId),
  };
  const restored = await carry(first, second, label);
  return { source, restored, again: await carry(second, third, label) };
}

async function carry(from: Place, to: Place, label: string): Promise<Copy> {
  const exported = await runExport(from.backend, from.caller, label);
  const path = inDirectory('archive.tar');
  await writePlainTar(archivePath(from.backend, exported), path);
  const operation = await runImport(to.backend, to.caller, path, { label, allowSharedLineage: true });
  const { database } = to.backend;
  const stateId = stateIdOf(operation);
  return {
    operation,
    rows: await readStateRows(database, stateId),
    digest: await historyDigestOf(database, stateId),
  };
}

const TABLES_OF_A_HISTORY = ['state_versions', 'state_version_tags', 'outputs'];
const LEFT_BEHIND = ['lock_acquire', 'state_export', 'state_import'];

/** The events that travel, without what each import adds to them. */
function travelling({ events = [] }: StateRows) {
  return events
    .filter(({ kind }) => !LEFT_BEHIND.includes(kind ?? ''))
    .map(({ payload, ...event }) => ({ ...event, payload: unmarked(payload ?? '') }))
    .map((event) => JSON.stringify(event))
    .sort();
}

/** A payload as it was before it was restored: one that is no object was put into one. */
function unmarked(payload: string): string {
  const original = payload.replace(/, "restored_by_import": "[^"]*"|"restored_by_import": "[^"]*"(, )?/, '');
  return original === payload ? payload : original.replace(/^\{"payload": (.*)\}$/, '$1');
}

function expectSameHistory(copy: Copy, source: { rows: StateRows; digest: string }): void {
  expect(copy.digest).toBe(source.digest);
  for (const table of TABLES_OF_A_HISTORY) expect(copy.rows[table]).toEqual(source.rows[table]);
  expect(travelling(copy.rows)).toEqual(travelling(source.rows));
  const stateOf = ({ states = [] }: StateRows) =>
    states.map(({ lineage, created_at, current_version_id }) => ({
      lineage,
      created_at,
      current_version_id,
    }));
  expect(stateOf(copy.rows)).toEqual(stateOf(source.rows));
}

const warningsOf = ({ operation }: Copy) => operation.report?.warnings.map(({ code }) => code) ?? [];

/**
 * The resource rows that reach over each version are its instances, address and attributes alike: all of them up to the
 * current version and at least them beyond it, where the rows that stay open are the current version's (data model 3.7).
 */
function expectRowsToCoverTheVersions({ rows }: Copy, currentSerial: string): void {
  const resources = rows.resources ?? [];
  const open = resources.filter(({ delete_serial }) => delete_serial === null);
  for (const { serial, raw_state } of rows.state_versions ?? []) {
    const at = BigInt(serial ?? '');
    const alive = resources
      .filter(
        ({ create_serial, delete_serial }) =>
          BigInt(create_serial ?? '') <= at &&
          (delete_serial === null || delete_serial === undefined || at < BigInt(delete_serial)),
      )
      .map(inShort);
    const instances = instancesOf(raw_state ?? '');
    if (at <= BigInt(currentSerial)) expect(alive.sort()).toEqual(instances);
    else expect(alive).toEqual(expect.arrayContaining(instances));
    if (serial === currentSerial) expect(open.map(inShort).sort()).toEqual(instances);
  }
}

const inShort = ({ address, attributes }: { address?: string | null; attributes?: string | null }) =>
  `${address} ${attributes}`;

function instancesOf(rawState: string): string[] {
  return [
    ...projectResources(readStateDocument(Buffer.from(rawState)), new AttributesHasher('as-written')).rows(),
  ]
    .map(({ address, attributes }) => inShort({ address, attributes: attributes.toString() }))
    .sort();
}

// Shrinking a failure restores the same history many times over.
const bounded = { numRuns: 20, interruptAfterTimeLimit: 50_000 };

test('any history comes back from a backend it was restored into, row for row, and its rows cover its versions', async () => {
  await fc.assert(
    fc.asyncProperty(randomHistory, async (history) => {
      const { source, restored, again } = await travel(history, false);
      expectSameHistory(restored, source);
      expectSameHistory(again, source);
      expectRowsToCoverTheVersions(restored, history.current_serial);
      expect(again.rows.resources).toEqual(restored.rows.resources);
      expect(warningsOf(again)).not.toContain('RESOURCE_SPANS_DERIVED');
    }),
    bounded,
  );
});

test('with the resource rows Kilolock made of it, in whatever spellings, it keeps every one of them in every column', async () => {
  // A pointer that was moved back leaves rows open that are not the current version's: those are made anew.
  const posted = randomHistory.map((history) => ({
    ...history,
    current_serial: history.versions.at(-1)?.serial ?? '',
  }));
  await fc.assert(
    fc.asyncProperty(posted, async (history) => {
      const { source, restored, again } = await travel(history, true);
      expectSameHistory(restored, source);
      expectSameHistory(again, source);
      expect(warningsOf(restored)).not.toContain('RESOURCE_SPANS_DERIVED');
      expect(restored.rows.resources).toEqual(source.rows.resources);
      expect(again.rows.resources).toEqual(source.rows.resources);
    }),
    bounded,
  );
});
