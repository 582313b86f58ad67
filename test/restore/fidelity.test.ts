import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import type { OperationRecord } from '../../src/operations/operation-records.ts';
import { buildArchive, type SampleHistory } from '../archive/support/build-archive.ts';
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

test.each([
  ['a NUL', '{"note": "a\\u0000b"}'],
  ['a lone surrogate', '{"note": "\\ud800"}'],
  ['a number beyond numeric', '{"n": 1e200000}'],
])(
  'an event payload with %s, which PostgreSQL cannot hold, refuses the whole import',
  async (_what, payload) => {
    const path = inDirectory('payload.klstate');
    await buildArchive(
      {
        versions: [{ serial: 1n, rawState: emptyDocument(1n) }],
        events: [{ kind: 'state_write', serial: 1n, payload }],
      },
      path,
    );
    const before = await countRows(backend.database, ['public']);
    const refusal = await refusalOf(
      runImport(backend, caller, path, { label: 'payload', allowSharedLineage: true }),
    );
    expect(refusal.code).toBe('ARCHIVE_INCONSISTENT');
    expect(await countRows(backend.database, ['public'])).toEqual(before);
  },
);

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
