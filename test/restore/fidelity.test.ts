import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import type { OperationRecord } from '../../src/operations/operation-records.ts';
import { buildArchive, type SampleHistory } from '../archive/support/build-archive.ts';
import { summed, takeApart, tarred, withMember } from '../archive/support/handmade.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import {
  archivePath,
  type Backend,
  createCaller,
  openBackend,
  refusalOf,
  runExport,
  runImport,
  stateIdOf,
} from '../operations/support/backend.ts';
import { postTerraformHistory } from '../operations/support/histories.ts';
import { countRows, readStateRows, type StateRows } from '../support/state-rows.ts';

let backend: Backend;
let caller: Caller;
beforeAll(async () => {
  backend = await openBackend();
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const inDirectory = temporaryDirectory();

/** Archives a history made by hand, restores it, and reads it back. */
async function restore(label: string, history: SampleHistory) {
  const path = inDirectory(`${label}.klstate`);
  const written = await buildArchive(history, path);
  const operation = await runImport(backend, caller, path, { label, allowSharedLineage: true });
  const rows = await readStateRows(backend.database, stateIdOf(operation));
  return { written, operation, rows, exported: await runExport(backend, caller, label) };
}

function emptyDocument(serial: bigint, lineage = '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10'): string {
  return `{"serial": ${serial}, "lineage": "${lineage}", "outputs": {}, "version": 4, "resources": [], "terraform_version": "1.9.8"}`;
}

const serialsOf = ({ state_versions }: StateRows) =>
  state_versions?.map(({ serial }) => BigInt(serial ?? ''));

describe('serials no double holds', () => {
  const serials = [0n, 9007199254740992n, 9007199254740993n, 9007199254740994n, 9223372036854775806n];

  test('survive in the rows, the pointer, the tags and the mapping, up to 2^63 - 2', async () => {
    const { rows, operation, written, exported } = await restore('serials', {
      state: { currentSerial: 9007199254740993n },
      versions: serials.map((serial, index) => ({
        id: `00000009-0000-4000-8000-00000000000${index}`,
        serial,
        rawState: emptyDocument(serial),
      })),
      tags: [
        { tag: 'odd', serial: 9007199254740993n },
        { tag: 'last', serial: 9223372036854775806n },
      ],
      events: [{ kind: 'state_write', serial: 9007199254740993n, payload: '{"serial": 9007199254740993}' }],
    });
    expect(serialsOf(rows)?.sort()).toEqual(serials.toSorted());
    expect(rows.states?.[0]?.current_version_id).toBe('version 9007199254740993');
    expect(rows.state_version_tags?.map(({ tag, state_version_id }) => [tag, state_version_id])).toEqual(
      expect.arrayContaining([
        ['odd', 'version 9007199254740993'],
        ['last', 'version 9223372036854775806'],
      ]),
    );
    expect(rows.events?.map(({ payload }) => payload).join()).toContain('"serial": 9007199254740993,');
    const mapping = await backend.database.pool.query(
      'select serial from state_archive.version_mapping where operation_id = $1 order by serial',
      [operation.id],
    );
    expect(mapping.rows.map(({ serial }) => BigInt(serial))).toEqual(serials);
    expect(exported.archive?.historyDigest).toBe(written.historyDigest);
  });

  test('2^63 - 1 is refused: the next version could not be numbered', async () => {
    await expect(
      buildArchive(
        { versions: [{ serial: 9223372036854775807n, rawState: emptyDocument(9223372036854775807n) }] },
        inDirectory('too-high.klstate'),
      ),
    ).rejects.toMatchObject({ code: 'ARCHIVE_INCONSISTENT' });
  });
});

test('versions keep their numeric order: serial 10 comes after 9, in the rows of resources too', async () => {
  const serials = Array.from({ length: 26 }, (_, index) => BigInt(index + 1));
  const { rows, written, exported } = await restore('order', {
    versions: serials.map((serial) => ({
      serial,
      rawState: `{"serial": ${serial}, "lineage": "", "outputs": {}, "version": 4, "resources": [{"mode": "managed", "name": "a", "type": "t", "provider": "p", "instances": [{"attributes": {"n": "${serial}"}, "schema_version": 0}]}], "terraform_version": "1.9.8"}`,
    })),
    resources: null,
  });
  const spans = rows.resources?.map((row) => [
    BigInt(row.create_serial ?? ''),
    row.delete_serial === null || row.delete_serial === undefined ? null : BigInt(row.delete_serial),
    row.attributes,
  ]);
  expect(spans?.sort((a, b) => Number(a[0]) - Number(b[0]))).toEqual(
    serials.map((serial) => [serial, serial === 26n ? null : serial + 1n, `{"n": "${serial}"}`]),
  );
  expect(exported.archive?.historyDigest).toBe(written.historyDigest);
});

test('tags keep any name Kilolock stores, and NULL, empty and other descriptions', async () => {
  const tags = [
    'release 1\nwith a newline',
    '🚀',
    '\uffee',
    'é',
    'e\u0301',
    'Release',
    'release',
    ' spaces ',
    '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
    '12\n',
    '١٢',
    'x'.repeat(64),
    '🚀'.repeat(64),
    '%_\\',
    "'; drop table states; --",
  ];
  const descriptions = [null, '', 'a — description', '\\N'];
  const { rows, written, exported } = await restore('tags', {
    versions: [{ serial: 1n, rawState: emptyDocument(1n) }],
    tags: tags.map((tag, index) => ({ tag, serial: 1n, description: descriptions[index % 4] ?? null })),
  });
  expect(rows.state_version_tags?.map(({ tag, description }) => [tag, description]).sort()).toEqual(
    tags.map((tag, index) => [tag, descriptions[index % 4] ?? null]).sort(),
  );
  expect(exported.archive?.historyDigest).toBe(written.historyDigest);
});

describe('an event that PostgreSQL cannot hold is refused by the dry run as by the import, in the same words', () => {
  const EVENT_ID = '00000002-0000-4000-8000-000000000000';
  test.each([
    ['a NUL in its payload', '"payload":"[\\"\\\\u0000\\"]"', /payload: holds \\u0000/],
    ['a lone surrogate in its payload', '"payload":"[\\"\\\\ud800\\"]"', /payload: .*surrogate/],
    ['a number beyond numeric in its payload', '"payload":"[1e200000]"', /payload: .*digits/],
    [
      'a payload that unfolds to 590 MB',
      `"payload":"[${'1e131000,'.repeat(4500)}0]"`,
      /payload: has more than/,
    ],
    [
      'a payload nested 5 000 deep',
      `"payload":"${'['.repeat(5000)}${']'.repeat(5000)}"`,
      /payload: is nested more than 4000 deep/,
    ],
    [
      'a kind that no index holds',
      `"kind":"${randomBytes(2000).toString('hex')}"`,
      /kind: has more than 255/,
    ],
  ])('%s', async (_what, field, message) => {
    const path = inDirectory('event.klstate');
    await buildArchive(
      {
        versions: [{ serial: 1n, rawState: emptyDocument(1n) }],
        events: [{ kind: 'state_write', serial: 1n }],
      },
      path,
    );
    const members = withMember(await takeApart(await readFile(path)), 'events.ndjson', (line) => {
      const [name = ''] = field.split(':');
      return String(line).replace(new RegExp(`${name}:"[^"]*"`), field.replaceAll('$', '$$$$'));
    });
    await writeFile(path, await tarred(summed(members)));
    const before = await countRows(backend.database, ['public']);
    const refusals = [];
    for (const dryRun of [true, false]) {
      refusals.push(
        await refusalOf(
          runImport(backend, caller, path, { label: 'event', allowSharedLineage: true, dryRun }),
        ),
      );
    }
    expect(refusals[0]).toEqual(refusals[1]);
    expect(refusals[0]).toMatchObject({
      code: 'ARCHIVE_INCONSISTENT',
      message: expect.stringMatching(message),
    });
    expect(refusals[0]?.message).toMatch(new RegExp(`^events\\.ndjson line 1 \\(${EVENT_ID}\\): `));
    expect(refusals[0]?.message).not.toContain('..');
    expect(await countRows(backend.database, ['public'])).toEqual(before);
  });
});

test.each([
  ['nested 3 000 deep', `{"a": ${'['.repeat(3000)}${']'.repeat(3000)}}`],
  ['of a number with every digit there can be', `{"n": ${'9'.repeat(131_072)}.${'1'.repeat(16_383)}}`],
  ['that is null, as an empty map of Go is', 'null'],
  ['of 4 MiB', `{"text": "${'x'.repeat(4 * 1024 * 1024 - 200)}"}`],
])('an event with a payload %s comes back, marked, and leaves again', async (_what, payload) => {
  const { operation, rows, exported } = await restore(`payload-${payload.length}`, {
    versions: [{ serial: 1n, rawState: emptyDocument(1n) }],
    events: [{ kind: 'state_write', serial: 1n, payload }],
  });
  const restored = rows.events?.find(({ kind }) => kind === 'state_write')?.payload ?? '';
  expect(restored).toContain(`"restored_by_import": "${operation.id}"`);
  expect(restored.length).toBeGreaterThan(payload.length);
  expect(exported.error).toBeNull();
});

test('an event that a foreign archive ascribes to another import says which one brought it here', async () => {
  const { rows, operation } = await restore('hearsay', {
    versions: [{ serial: 1n, rawState: emptyDocument(1n) }],
    events: [
      {
        kind: 'state_write',
        serial: 1n,
        payload: '{"restored_by_import": "long ago", "__proto__": {"a": 1}}',
      },
    ],
  });
  const payload = rows.events?.find(({ kind }) => kind === 'state_write')?.payload;
  expect(payload).toBe(`{"__proto__": {"a": 1}, "restored_by_import": "${operation.id}"}`);
});

describe('resource rows', () => {
  async function copyOf(
    label: string,
    change: string,
  ): Promise<{ source: StateRows; restored: StateRows; operation: OperationRecord }> {
    const owner = await createCaller(backend);
    const stateId = await postTerraformHistory(backend.database, owner, label);
    await backend.database.pool.query(change, [stateId]);
    const source = await readStateRows(backend.database, stateId);
    const exported = await runExport(backend, owner, label);
    const operation = await runImport(backend, owner, archivePath(backend, exported), {
      label: `${label}-copy`,
      allowSharedLineage: true,
    });
    return { source, restored: await readStateRows(backend.database, stateIdOf(operation)), operation };
  }

  test('with hashes of another spelling, times of their own and no schema version come back as they were', async () => {
    const { source, restored, operation } = await copyOf(
      'spellings',
      `update resources set attributes_hash = encode(sha256(id::text::bytea), 'hex'), schema_version = 0,
         created_at = created_at + interval '1 hour' where state_id = $1 and create_serial in (1, 6)`,
    );
    expect(restored.resources).toEqual(source.resources);
    expect(operation.report?.warnings.map(({ code }) => code)).not.toContain('RESOURCE_SPANS_DERIVED');
  });

  test.each([
    [
      'a row too few',
      'delete from resources where state_id = $1 and create_serial = 1 and delete_serial is null',
    ],
    [
      'a row that ends too early',
      'update resources set delete_serial = 9 where state_id = $1 and create_serial = 1 and delete_serial is null',
    ],
    [
      'a row that lasts too long',
      'update resources set delete_serial = 9 where state_id = $1 and delete_serial = 8',
    ],
    [
      'a row begun too late',
      'update resources set create_serial = 2 where state_id = $1 and create_serial = 1 and delete_serial = 8',
    ],
    [
      'an address that no version has',
      `update resources set address = 'aws_vpc.ghost' where state_id = $1 and create_serial = 1 and delete_serial = 8`,
    ],
  ])(
    'that disagree with the raw states (%s) are derived from these, with a warning',
    async (what, change) => {
      const { restored, operation } = await copyOf(`disagree/${what}`, change);
      const owner = await createCaller(backend);
      const undisturbed = await readStateRows(
        backend.database,
        await postTerraformHistory(backend.database, owner, 'undisturbed'),
      );
      const timeless = ({ resources }: StateRows) => resources?.map(({ created_at: _, ...row }) => row);
      expect(timeless(restored)).toEqual(timeless(undisturbed));
      expect(operation.report?.warnings.map(({ code }) => code)).toContain('RESOURCE_SPANS_DERIVED');
    },
  );
});
