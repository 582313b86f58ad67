import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { ArchivedResource } from '../../src/archive/model.ts';
import type { Caller } from '../../src/history/states.ts';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import { readStateDocument } from '../../src/terraform/document.ts';
import { projectResources } from '../../src/terraform/projection.ts';
import { buildArchive, type SampleHistory } from '../archive/support/build-archive.ts';
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
import { post } from '../operations/support/histories.ts';
import { readStateRows } from '../support/state-rows.ts';
import { type Things, thingsDocument } from './support/histories.ts';
import { legacyAttributesHash } from './support/legacy-attributes-hash.ts';
import { writePlainTar } from './support/plain-tar.ts';

let backend: Backend;
let caller: Caller;
beforeAll(async () => {
  backend = await openBackend();
});
beforeEach(async () => {
  caller = await createCaller(backend);
});
afterAll(() => backend.close());

const inDirectory = temporaryDirectory();

type Span = Partial<ArchivedResource> & { address: string; createSerial: bigint };

const A1 = '{"id": "a-1"}';
const A2 = '{"id": "a-2"}';
const B = '{"id": "b-1"}';

/** Four versions: `thing.b` comes at 2 and goes at 6, `thing.a` changes at 4. */
const VERSIONS: ReadonlyMap<bigint, Things> = new Map([
  [1n, { a: A1 }],
  [2n, { a: A1, b: B }],
  [4n, { a: A2, b: B }],
  [6n, { a: A2 }],
]);

const RECORDED_AT = '2026-05-05T05:05:05.050505Z';

/** A span as Kilolock recorded it: hashed in a spelling and at a time that cannot be derived. */
function span(
  address: string,
  createSerial: bigint,
  deleteSerial: bigint | null,
  changes: object = {},
): Span {
  const attributesHash = Buffer.from(`${address} ${createSerial}`).toString('hex').padEnd(64, '0');
  return {
    address,
    createSerial,
    deleteSerial,
    attributesHash,
    schemaVersion: 1,
    createdAt: RECORDED_AT,
    ...changes,
  };
}

const SPANS = [span('thing.a', 1n, 4n), span('thing.b', 2n, 6n), span('thing.a', 4n, null)];

function historyOf(resources: readonly Span[] | null, state: SampleHistory['state'] = {}): SampleHistory {
  return {
    versions: [...VERSIONS].map(([serial, things]) => ({ serial, rawState: thingsDocument(serial, things) })),
    resources,
    state,
  };
}

type SpanRow = readonly [
  address: string,
  create: string,
  end: string | null,
  attributes: string,
  hash: string,
  schemaVersion: string,
  createdAt: string,
];

/** The resource rows of the state, in the order of the archive. */
async function spanRows(stateId: string): Promise<SpanRow[]> {
  const { rows } = await backend.database.pool.query<{ row: SpanRow }>({
    text: `select json_build_array(address, create_serial::text, delete_serial::text, attributes::text, attributes_hash,
        schema_version::text, to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) as row
      from resources where state_id = $1 order by create_serial, address collate "C"`,
    values: [stateId],
  });
  return rows.map(({ row }) => (typeof row === 'string' ? JSON.parse(row) : row));
}

async function restore(history: SampleHistory, label = 'spans') {
  const compressed = inDirectory('spans.klstate');
  await buildArchive(history, compressed);
  const path = inDirectory('spans.tar');
  await writePlainTar(compressed, path);
  return restoreFrom(path, label);
}

async function restoreFrom(path: string, label: string) {
  const operation = await runImport(backend, caller, path, { label, allowSharedLineage: true });
  const rows = await spanRows(stateIdOf(operation));
  const warnings = operation.report?.warnings ?? [];
  expect(operation.report?.resourceSpans).toBe(rows.length);
  return { operation, rows, warnings, codes: warnings.map(({ code }) => code) };
}

/** The rows of `SPANS` when they were derived from the raw states: hashed as Terraform writes them, as old as their version. */
function derivedRow(address: string, create: bigint, end: bigint | null): SpanRow {
  const document = readStateDocument(Buffer.from(thingsDocument(create, VERSIONS.get(create) ?? {})));
  const resource = [...projectResources(document, new AttributesHasher('terraform')).rows()].find(
    (row) => row.address === address,
  );
  const createdAt = `2026-03-02T10:00:0${create}.000118Z`;
  const { attributes, attributesHash } = resource ?? { attributes: '', attributesHash: '' };
  return [
    address,
    String(create),
    end === null ? null : String(end),
    attributes.toString(),
    attributesHash,
    '1',
    createdAt,
  ];
}

function carriedRow({
  address,
  createSerial,
  deleteSerial,
  attributesHash,
  schemaVersion,
  createdAt,
}: Span): SpanRow {
  const attributes = VERSIONS.get(createSerial)?.[address.replace('thing.', '')] ?? '';
  const end = deleteSerial === null || deleteSerial === undefined ? null : String(deleteSerial);
  return [
    address,
    String(createSerial),
    end,
    attributes,
    attributesHash ?? '',
    String(schemaVersion),
    createdAt ?? '',
  ];
}

const DERIVED = [
  derivedRow('thing.a', 1n, 4n),
  derivedRow('thing.b', 2n, 6n),
  derivedRow('thing.a', 4n, null),
];

describe('spans that agree with the raw states are taken as they are', () => {
  test('with the hash, the schema version and the time that Kilolock recorded, and a note about the hashes', async () => {
    const { rows, operation, warnings } = await restore(historyOf(SPANS));
    expect(rows).toEqual(SPANS.map(carriedRow));
    expect(operation.report?.resourceSpansDerived).toBe(false);
    expect(warnings).toEqual([
      {
        code: 'RESOURCE_HASHES_KEPT',
        serial: null,
        message: expect.stringMatching(/^3 resource spans keep a hash/),
      },
    ]);
  });

  test('without a note when the hashes are those of Terraform’s own spelling', async () => {
    const hashed = SPANS.map((one, index) => ({ ...one, attributesHash: DERIVED[index]?.[4] ?? '' }));
    const { rows, codes } = await restore(historyOf(hashed));
    expect(rows).toEqual(hashed.map(carriedRow));
    expect(codes).toEqual([]);
  });

  test('rows from before Kilolock knew schema versions: version 0 and the hash of ten fields', async () => {
    const legacy = SPANS.map((one) => {
      const text = thingsDocument(one.createSerial, VERSIONS.get(one.createSerial) ?? {});
      const resource = [
        ...projectResources(readStateDocument(Buffer.from(text)), new AttributesHasher('as-written')).rows(),
      ].find((row) => row.address === one.address);
      if (resource === undefined) throw new Error(`There is no ${one.address}.`);
      return { ...one, schemaVersion: 0, attributesHash: legacyAttributesHash(resource) };
    });
    const { rows, codes } = await restore(historyOf(legacy));
    expect(rows).toEqual(legacy.map(carriedRow));
    expect(codes).toEqual(['RESOURCE_HASHES_KEPT']);
  });

  test('one content over several rows, as when the spelling changed from one version to the next', async () => {
    const split = [
      span('thing.a', 1n, 2n),
      span('thing.a', 2n, 4n),
      span('thing.b', 2n, 6n),
      span('thing.a', 4n, 6n),
      span('thing.a', 6n, null),
    ];
    const { rows, codes } = await restore(historyOf(split));
    expect(rows).toEqual(split.map(carriedRow));
    expect(codes).toEqual(['RESOURCE_HASHES_KEPT']);
  });

  test('the next write then finds the rows it expects: what did not change keeps its row', async () => {
    const hashed = SPANS.map((one, index) => ({ ...one, attributesHash: DERIVED[index]?.[4] ?? '' }));
    const { operation } = await restore(historyOf(hashed));
    const document = JSON.stringify(JSON.parse(thingsDocument(7n, { a: A2, b: B })), null, 2);
    await post(backend.database, caller, 'spans', `${document}\n`);
    const rows = await spanRows(stateIdOf(operation));
    expect(rows.map(([address, create, end]) => [address, create, end])).toEqual([
      ['thing.a', '1', '4'],
      ['thing.b', '2', '6'],
      ['thing.a', '4', null],
      ['thing.b', '7', null],
    ]);
  });
});

describe('spans that disagree with the raw states are derived from these instead, and the warning says why', () => {
  const [a1, b, a2] = SPANS as [Span, Span, Span];

  test.each<[what: string, spans: readonly Span[], why: RegExp]>([
    ['one is missing', [a1, a2], /serial 2 holds an instance that no span reaches over/],
    [
      'one ends too early',
      [{ ...a1, deleteSerial: 2n }, b, a2],
      /serial 2 holds an instance that no span reaches over/,
    ],
    [
      'one lasts too long',
      [a1, { ...b, deleteSerial: null }, a2],
      /reaches over serial 6 with content that version does not hold/,
    ],
    ['one lasts over a change', [{ ...a1, deleteSerial: null }, b], /reaches over serial 4 with content/],
    ['one begins too late', [{ ...a1, createSerial: 2n }, b, a2], /serial 1 holds an instance that no span/],
    [
      'one has an address no version holds',
      [a1, span('thing.ghost', 1n, null), b, a2],
      /begins at serial 1 for an address that version does not hold/,
    ],
    [
      'one begins again while it lasts',
      [a1, span('thing.a', 2n, 4n), b, a2],
      /two spans of one address reach over serial 2/,
    ],
    [
      'two have one address and one beginning',
      [a1, a1, b, a2],
      /two spans of one address reach over serial 1/,
    ],
    [
      'one begins at no version',
      [a1, b, span('thing.b', 3n, 4n), a2],
      /1 spans before serial 4 begin at no version/,
    ],
    ['one begins after the last version', [a1, b, a2, span('thing.c', 7n, null)], /no version|last version/],
    [
      'they do not stand in the order of their beginnings',
      [b, a1, a2],
      /serial 1 holds an instance that no span reaches over/,
    ],
    ['the order breaks further on', [a1, a2, b], /serial 2 holds an instance that no span reaches over/],
    [
      'one has another schema version than its instance',
      [a1, { ...b, schemaVersion: 2 }, a2],
      /at serial 2 has another schema version/,
    ],
    [
      'the last one ends after the last version',
      [a1, b, { ...a2, deleteSerial: 9n }],
      /not those of the current version, serial 6/,
    ],
    ['there are none', [], /the archive carries none/],
  ])('when %s', async (_what, spans, why) => {
    const { rows, operation, warnings } = await restore(historyOf(spans));
    expect(rows).toEqual(DERIVED);
    expect(operation.report?.resourceSpansDerived).toBe(true);
    expect(warnings).toEqual([
      { code: 'RESOURCE_SPANS_DERIVED', serial: null, message: expect.stringMatching(why) },
    ]);
  });

  test('when the archive has no resources.ndjson', async () => {
    const { rows, operation, warnings } = await restore(historyOf(null));
    expect(rows).toEqual(DERIVED);
    expect(operation.report?.resourceSpansDerived).toBe(true);
    expect(warnings).toEqual([
      {
        code: 'RESOURCE_SPANS_DERIVED',
        serial: null,
        message: expect.stringContaining('the archive carries none'),
      },
    ]);
  });

  test('and a history without instances needs none: no warning, carried or not', async () => {
    for (const [label, resources] of [
      ['none', null],
      ['empty', []],
    ] as const) {
      const empty = { versions: [{ serial: 1n, rawState: thingsDocument(1n, {}) }], resources };
      expect(await restore(empty, label)).toMatchObject({ rows: [], codes: [] });
    }
  });
});

describe('a history whose current version is not its last', () => {
  /** The rows of the current version, serial 2, stay open; what the versions after it hold otherwise ends with them. */
  const BRANCH = [span('thing.a', 1n, null), span('thing.b', 2n, null), span('thing.a', 4n, 7n)];
  const AT_2 = { currentSerial: 2n };

  test('keeps the rows of its current version open, carried or derived', async () => {
    const carried = await restore(historyOf(BRANCH, AT_2), 'carried');
    expect(carried.rows).toEqual(BRANCH.map(carriedRow));
    expect(carried.codes.toSorted()).toEqual(['CURRENT_IS_NOT_LAST', 'RESOURCE_HASHES_KEPT']);
    const derived = await restore(historyOf(null, AT_2), 'derived');
    expect(derived.rows).toEqual([
      derivedRow('thing.a', 1n, null),
      derivedRow('thing.b', 2n, null),
      derivedRow('thing.a', 4n, 7n),
    ]);
    expect(derived.codes.toSorted()).toEqual(['CURRENT_IS_NOT_LAST', 'RESOURCE_SPANS_DERIVED']);
  });

  test('does not take the rows of its last version for those of its current one', async () => {
    const { rows, warnings } = await restore(historyOf(SPANS, AT_2));
    expect(rows.filter(([, , end]) => end === null).map(([address, create]) => [address, create])).toEqual([
      ['thing.a', '1'],
      ['thing.b', '2'],
    ]);
    expect(warnings).toContainEqual(
      expect.objectContaining({
        code: 'RESOURCE_SPANS_DERIVED',
        message: expect.stringContaining('not those of the current version, serial 2'),
      }),
    );
  });

  test('does not take a row that opened after it either', async () => {
    const late = [...BRANCH.slice(0, 2), span('thing.a', 4n, null)];
    const { rows, warnings } = await restore(historyOf(late, AT_2));
    expect(rows.map(([address, create, end]) => [address, create, end])).toEqual([
      ['thing.a', '1', null],
      ['thing.b', '2', null],
      ['thing.a', '4', '7'],
    ]);
    expect(warnings).toContainEqual(
      expect.objectContaining({
        code: 'RESOURCE_SPANS_DERIVED',
        message: expect.stringContaining('begins at serial 4, after the current version'),
      }),
    );
  });

  test('restored, exported and restored again keeps every row', async () => {
    const once = await restore(historyOf(null, AT_2), 'once');
    const exported = archivePath(backend, await runExport(backend, caller, 'once'));
    const twice = await restoreFrom(exported, 'twice');
    expect(twice.rows).toEqual(once.rows);
    expect(twice.codes).toEqual(['CURRENT_IS_NOT_LAST']);
    const { resources } = await readStateRows(backend.database, stateIdOf(once.operation));
    expect((await readStateRows(backend.database, stateIdOf(twice.operation))).resources).toEqual(resources);
  });
});
