import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { PoolClient } from 'pg';
import pino from 'pino';
import type { Caller } from '../../src/history/states.ts';
import { setLegalHold } from '../../src/operations/archive-retention.ts';
import { removeExpiredArchives, sweepStore } from '../../src/operations/housekeeping.ts';
import type { OperationRecord } from '../../src/operations/operation-records.ts';
import { toUserError } from '../../src/operations/user-error.ts';
import { RetentionRefusedError, StoreUnavailableError } from '../../src/store/object-store.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  operationOf,
  refusalOf,
  runExport,
  runImport,
  withPrincipal,
} from './support/backend.ts';
import { postFirstDocument } from './support/histories.ts';
import { interceptQueries, loseConnection } from './support/intercept-queries.ts';

const DAY = 86_400_000;
const later = (milliseconds: number) => new Date(Date.now() + milliseconds).toISOString();

let backend: Backend;
let caller: Caller;
beforeAll(async () => {
  backend = await openBackend();
});
beforeEach(async () => {
  caller = await createCaller(backend);
  await postFirstDocument(backend.database, caller, 'app');
});
afterAll(() => backend.close());

const stored = () => readdir(join(backend.storeDirectory, 'archives'));
const keyOf = ({ archive }: OperationRecord) => archive?.objectKey ?? 'none';

/** The usual time of an archive goes by, and the housekeeping comes. */
async function letTimePass({ id }: OperationRecord) {
  await backend.query(
    `update state_archive.operation set finished_at = finished_at - interval '1 year',
       expires_at = expires_at - interval '1 year' where id = $1`,
    [id],
  );
  await removeExpiredArchives(backend.services);
}

function hold({ id }: { id: string }, legalHold: boolean, services = backend.services, by = caller) {
  return setLegalHold(services, { caller: by, requestId: 'request-1' }, id, legalHold);
}
const codeOf = (outcome: Promise<unknown>) =>
  outcome.then(
    () => 'none',
    (error: unknown) => toUserError(error)?.code ?? error,
  );

describe('an archive that is exported to be kept until a time', () => {
  test('is kept until then, says so, and is on record as kept', async () => {
    const retainUntil = later(400 * DAY);
    const kept = await runExport(backend, caller, 'app', { retainUntil });
    expect(kept.retention).toEqual({ retainUntil: retainUntil.replace('Z', '000Z'), legalHold: false });
    expect(kept.expiresAt).toBe(kept.retention.retainUntil);
    const [event] = await backend.query(
      "select payload ->> 'retain_until' as until from events where payload ->> 'archive_id' = $1",
      [kept.id],
    );
    expect(event).toEqual({ until: retainUntil });
    // The object is kept whatever the record says.
    await letTimePass(kept);
    await letTimePass(kept);
    expect((await operationOf(backend, caller, kept.id)).status).toBe('EXPIRED');
    expect(await stored()).toContain(keyOf(kept));
  });

  test('is kept until then though its export has died before it could say so, and the log tells of it', async () => {
    const kept = await runExport(backend, caller, 'app', { retainUntil: later(2 * DAY) });
    await backend.query("update state_archive.operation set status = 'FAILED' where id = $1", [kept.id]);
    const first = keyOf(kept);
    const { archives, uploads } = backend.services.store;
    const store = { uploads, archives: { ...archives, list: () => archives.list(first) } };
    const log = new PassThrough();
    await sweepStore({ ...backend.services, store, logger: pino(log) }, 'archives', '');
    expect(await stored()).toContain(first);
    expect(JSON.parse(log.read().toString())).toMatchObject({
      msg: 'archives that are to go are kept by the store until a time',
      count: 1,
      first,
    });
  });

  test('is kept for as long as any other when that is longer', async () => {
    const services = { ...backend.services, retentionSeconds: 10 * 86_400 };
    const kept = await runExport({ services }, caller, 'app', { retainUntil: later(2 * DAY) });
    expect(Date.parse(kept.expiresAt ?? '')).toBeGreaterThan(Date.now());
  });

  test.each([
    ['a time that is past', -DAY],
    ['a time that will be past when its turn comes', DAY / 2],
    ['a time that no one alive decides on', 4000 * DAY],
  ])('is none for %s: nothing is started', async (_what, milliseconds) => {
    const before = await backend.query('select id from state_archive.operation');
    const refusal = await refusalOf(runExport(backend, caller, 'app', { retainUntil: later(milliseconds) }));
    expect(refusal).toMatchObject({ code: 'INVALID_INPUT', path: ['input', 'retainUntil'] });
    expect(await backend.query('select id from state_archive.operation')).toEqual(before);
  });

  test('counts among those that an environment keeps, and among their bytes', async () => {
    const services = { ...backend.services, maxArchives: 1 };
    const kept = await runExport({ services }, caller, 'app', { retainUntil: later(2 * DAY) });
    await backend.query(
      "update state_archive.operation set finished_at = now() - interval '1 year' where id = $1",
      [kept.id],
    );
    expect((await refusalOf(runExport({ services }, caller, 'app'))).code).toBe('QUOTA_EXCEEDED');
    const full = { ...backend.services, maxArchiveBytesKept: Number(kept.archive?.sizeBytes) };
    expect((await refusalOf(runExport({ services: full }, caller, 'app'))).code).toBe('QUOTA_EXCEEDED');
  });
});

describe('an archive under a legal hold', () => {
  test('is kept without end, by its export or later, and goes when that is lifted and its time is past', async () => {
    const held = await runExport(backend, caller, 'app', { legalHold: true });
    const later = await runExport(backend, caller, 'app');
    await hold(later, true);
    for (const each of [held, later]) {
      expect(await operationOf(backend, caller, each.id)).toMatchObject({
        status: 'SUCCEEDED',
        expiresAt: null,
        retention: { legalHold: true },
      });
      await letTimePass(each);
      expect(await stored()).toContain(keyOf(each));
      await hold(each, false);
      expect((await operationOf(backend, caller, each.id)).retention.legalHold).toBe(false);
      await removeExpiredArchives(backend.services);
      expect(await stored()).not.toContain(keyOf(each));
      expect(await codeOf(hold(each, true))).toBe('ARCHIVE_NOT_KEPT');
    }
  });

  test('tells who held it and who let it go, once however often it is asked', async () => {
    const exported = await runExport(backend, caller, 'app');
    for (const legalHold of [true, true, false, false]) await hold(exported, legalHold);
    const events = await backend.query(
      `select actor, payload ->> 'outcome' as outcome from events
       where kind = 'state_export' and payload ->> 'archive_id' = $1`,
      [exported.id],
    );
    expect(events.map(({ outcome }) => outcome).sort()).toEqual(['held', 'released', 'succeeded']);
    expect((await operationOf(backend, caller, exported.id)).expiresAt).toBe(exported.expiresAt);
  });

  test('is held and let go by whoever has the right to that alone', async () => {
    const exported = await runExport(backend, caller, 'app');
    const scopes = new Set([...caller.principal.scopes].filter((scope) => scope !== 'state.retain'));
    const other = withPrincipal(caller, { scopes });
    await expect(hold(exported, true, backend.services, other)).rejects.toMatchObject({
      name: 'NotPermittedError',
    });
    for (const wish of [{ legalHold: true }, { retainUntil: later(2 * DAY) }]) {
      await expect(runExport(backend, other, 'app', wish)).rejects.toMatchObject({
        name: 'NotPermittedError',
      });
    }
    const stranger = await createCaller(backend);
    expect(await codeOf(hold(exported, true, backend.services, stranger))).toBe('OPERATION_NOT_FOUND');
  });

  test('is of no operation that has no archive', async () => {
    const exported = await runExport(backend, caller, 'app');
    const path = archivePath(backend, exported);
    const imported = await runImport(backend, caller, path, { label: 'copy', allowSharedLineage: true });
    expect(await codeOf(hold(imported, true))).toBe('ARCHIVE_NOT_KEPT');
  });
});

describe('a store that cannot keep archives', () => {
  test('has nothing exported that is to be kept, nor held', async () => {
    const { store } = backend.services;
    const services = {
      ...backend.services,
      store: { ...store, archives: { ...store.archives, retention: null } },
    };
    const exported = await runExport({ services }, caller, 'app');
    for (const wish of [{ legalHold: true }, { retainUntil: later(2 * DAY) }]) {
      const refusal = await refusalOf(runExport({ services }, caller, 'app', wish));
      expect(refusal).toMatchObject({ code: 'RETENTION_UNSUPPORTED', path: ['input', Object.keys(wish)[0]] });
    }
    expect(await codeOf(hold(exported, true, services))).toBe('RETENTION_UNSUPPORTED');
    expect((await operationOf(backend, caller, exported.id)).retention.legalHold).toBe(false);
  });
});

describe('a hold that fails', () => {
  const failing = (error: Error) => {
    const { store } = backend.services;
    const retention = {
      retainUntil: () => Promise.reject(error),
      hold: () => Promise.reject(error),
    };
    return { ...backend.services, store: { ...store, archives: { ...store.archives, retention } } };
  };

  test.each([
    ['because the store does not do it', new RetentionRefusedError('for a test'), 'RETENTION_UNSUPPORTED'],
    ['because the store is not there', new StoreUnavailableError('ECONNREFUSED'), 'OPERATION_INTERRUPTED'],
  ])('%s leaves the record as it was', async (_why, error, code) => {
    const exported = await runExport(backend, caller, 'app');
    expect(await codeOf(hold(exported, true, failing(error)))).toBe(code);
    expect(await operationOf(backend, caller, exported.id)).toEqual(exported);
  });

  test('because its record is not written, or nobody learns whether it was, comes to the same when it is asked again', async () => {
    for (const when of ['before', 'after'] as const) {
      const exported = await runExport(backend, caller, 'app');
      const lose = (statement: string, client: PoolClient) =>
        statement === 'commit' ? loseConnection(client) : undefined;
      const database =
        when === 'before'
          ? interceptQueries(backend.database, lose)
          : interceptQueries(backend.database, () => {}, lose);
      const outcome = await codeOf(hold(exported, true, backend.services, { ...caller, database }));
      // Of a COMMIT that was carried out the database tells.
      expect(outcome === 'none').toBe(when === 'after');
      await hold(exported, true);
      await letTimePass(exported);
      expect(await stored()).toContain(keyOf(exported));
      await hold(exported, false);
      await removeExpiredArchives(backend.services);
      expect(await stored()).not.toContain(keyOf(exported));
    }
  });
});
