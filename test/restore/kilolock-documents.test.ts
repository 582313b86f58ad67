import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { toUserError } from '../../src/operations/user-error.ts';
import { destinationOf } from '../../src/restore/destination.ts';
import { appendSnapshot } from '../../src/restore/snapshot.ts';
import { buildArchive } from '../archive/support/build-archive.ts';
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
import { countRows, readStateRows } from '../support/state-rows.ts';
import { resourceText } from '../terraform/state-text.ts';
import {
  type KilolockCase,
  kilolockCases,
  kilolockHistory,
  RESOURCE_COLUMNS,
  recordedColumn,
  unpack,
} from '../terraform/support/kilolock-documents.ts';

let source: Backend;
let elsewhere: Backend;
let caller: Caller;
let stranger: Caller;
beforeAll(async () => {
  [source, elsewhere] = await Promise.all([openBackend(), openBackend()]);
  caller = await createCaller(source);
  stranger = await createCaller(elsewhere);
});
afterAll(() => Promise.all([source.close(), elsewhere.close()]));

const inDirectory = temporaryDirectory();
const cases = new Map(kilolockCases.map((given) => [given.name, given]));
/** Whose stored text has other rows than the posted one: a key stands there twice, in two cases. */
const ambiguous = kilolockCases.filter(
  ({ name, refused }) => refused === undefined && !kilolockHistory.documents.includes(name),
);

function append(label: string, { document }: Pick<KilolockCase, 'document'>) {
  return appendSnapshot(source.database, destinationOf(caller.namespace, label), {
    document: unpack(document),
    source: 'import',
    actor: 'somebody',
  });
}

function caseOf(name: string): KilolockCase {
  const given = cases.get(name);
  if (given === undefined) throw new Error(`There is no case ${name}.`);
  return given;
}

async function appendAll(label: string, documents: readonly KilolockCase[]): Promise<string> {
  let stateId = '';
  for (const given of documents) stateId = (await append(label, given)).stateId;
  return stateId;
}

describe('everything that Kilolock holds, as one history', () => {
  let stateId: string;
  beforeAll(async () => {
    stateId = await appendAll('everything', kilolockHistory.documents.map(caseOf));
  });

  test('has the rows that Kilolock wrote, hashes and spans included', async () => {
    const columns = RESOURCE_COLUMNS.map((column) =>
      column === 'schema_version' ? column : `${column}::text as "${column}"`,
    );
    const { rows } = await source.database.pool.query<Record<string, string | number | null>>(
      `select ${columns}, create_serial::text, delete_serial::text from resources where state_id = $1
       order by create_serial, address collate "C"`,
      [stateId],
    );
    expect(rows.map((row) => Object.values(row).map(recordedColumn))).toEqual(kilolockHistory.spans);
  });

  test('is exported, and comes back elsewhere with every row equal', async () => {
    const archive = archivePath(source, await runExport(source, caller, 'everything'));
    const operation = await runImport(elsewhere, stranger, archive);
    const restored = await readStateRows(elsewhere.database, stateIdOf(operation));
    const original = await readStateRows(source.database, stateId);
    expect(original.outputs?.length).toBeGreaterThan(30);
    for (const table of ['state_versions', 'resources', 'outputs']) {
      expect(restored[table]).toEqual(original[table]);
    }
    expect(operation.report?.resourceSpansDerived).toBe(false);
  });
});

test('a key that stands in two cases comes back too: the rows are those of the stored text, and a warning says so', async () => {
  const held = ambiguous.filter(({ again }) => again !== null);
  expect(held.length).toBeGreaterThan(30);
  await appendAll('ambiguous', held);
  const archive = archivePath(source, await runExport(source, caller, 'ambiguous'));
  const operation = await runImport(elsewhere, stranger, archive, { label: 'ambiguous' });
  expect(operation.report?.warnings.map(({ code }) => code)).toContain('RESOURCE_SPANS_DERIVED');
  const { outputs } = await readStateRows(elsewhere.database, stateIdOf(operation));
  for (const [index, given] of held.entries()) {
    const ofVersion = outputs?.filter((row) => row.state_version_id === `version ${index + 1}`) ?? [];
    expect(ofVersion.map((row) => [row.name, row.value, row.value_type, row.sensitive === 'true'])).toEqual(
      given.againOutputs ?? given.outputs,
    );
  }
});

describe('what could not come back does not leave', () => {
  test('such as a document that Kilolock itself could not read again', async () => {
    await append('unreadable', caseOf('instance index_key bad, then good'));
    const refusal = await refusalOf(runExport(source, caller, 'unreadable'));
    expect(refusal.code).toBe('HISTORY_INCONSISTENT');
    expect(refusal.message).toContain('serial 1 ');
    expect(refusal.message).toContain('$.resources[0].instances[0].index_key');
  });

  test.each([
    ['another version of the format', '{"version": 3, "serial": 2}', '$.version'],
    ['no state at all', '[1]', '$'],
    ['a member of another type', '{"version": 4, "resources": [{"name": 1}]}', '$.resources[0].name'],
  ])('such as a row that Kilolock never wrote: %s', async (what, planted, path) => {
    const { stateId } = await append(what, caseOf('plain'));
    await append(what, caseOf('plain'));
    await source.database.pool.query(
      'update state_versions set raw_state = $2 where state_id = $1 and serial = 2',
      [stateId, planted],
    );
    const refusal = await refusalOf(runExport(source, caller, what));
    expect(refusal).toMatchObject({ code: 'HISTORY_INCONSISTENT' });
    expect(refusal.message).toContain(`serial 2 is none that Kilolock could take back: at ${path}, `);
  });
});

describe('instances of one address', () => {
  const restored = async (label: string, ...instances: string[]) => {
    const path = inDirectory(`${label}.klstate`);
    const rawState = `{"version": 4, "serial": 1, "lineage": "", "resources": [${resourceText(...instances)}]}`;
    await buildArchive({ versions: [{ serial: 1n, rawState }], resources: null }, path);
    const options = { label, allowSharedLineage: true };
    const operation = await runImport(elsewhere, stranger, path, options);
    const { resources } = await readStateRows(elsewhere.database, stateIdOf(operation));
    const warnings = operation.report?.warnings.filter(({ serial }) => serial === 1n) ?? [];
    return { addresses: resources?.map(({ address }) => address), warnings };
  };

  test('are told, when neither is deposed', async () => {
    const { addresses, warnings } = await restored('twice', '{"schema_version": 1}', '{}');
    expect(addresses).toEqual(['aws_instance.web']);
    expect(warnings).toMatchObject([{ code: 'ADDRESS_REPEATED' }]);
    expect(warnings[0]?.message).toContain('aws_instance.web is the address of several instances');
  });

  test('are not told of a deposed one that stands alone', async () => {
    const { warnings } = await restored('alone', '{"deposed": "a1b2c3d4"}');
    expect(warnings).toMatchObject([{ code: 'DEPOSED_INSTANCE' }]);
    expect(warnings[0]?.message).toContain('a deposed object and no current one');
  });

  test('are not those of the keys "0" and "-0"', async () => {
    const { addresses, warnings } = await restored('zero', '{"index_key": "-0"}', '{"index_key": "0"}');
    expect(addresses?.toSorted()).toEqual(['aws_instance.web[-0]', 'aws_instance.web[0]']);
    expect(warnings).toEqual([]);
  });
});

describe('what only the database can tell', () => {
  const tooLong = kilolockCases.filter(
    ({ name, refused }) => refused === 500 && /(random hex digits|300000 times a)$/.test(name),
  );

  test.each(tooLong)(
    '$name: refused as a snapshot, with the place, and nothing is written',
    async (given) => {
      const before = await countRows(source.database);
      const refusal = await append('long', given).catch((error: unknown) => error);
      expect(toUserError(refusal)).toMatchObject({
        code: 'UNSUPPORTED_STATE_DOCUMENT',
        message: expect.stringMatching(
          /at \$\.(resources\[0\]\.instances\[0\]|outputs\["[^"]{65}"\]),[^.]*too long[^.]*\.$/,
        ),
      });
      expect(await countRows(source.database)).toEqual(before);
    },
  );

  test('is refused by a dry run in the words of the import, with serial, member and place', async () => {
    const path = inDirectory('long.klstate');
    const rawState = unpack(caseOf('for_each key of 4000 random hex digits').document).toString();
    await buildArchive({ versions: [{ serial: 3n, rawState }], resources: null }, path);
    const request = { label: 'long', allowSharedLineage: true };
    const dry = await refusalOf(runImport(elsewhere, stranger, path, { ...request, dryRun: true }));
    const wet = await refusalOf(runImport(elsewhere, stranger, path, request));
    expect(dry).toEqual(wet);
    expect(dry.code).toBe('UNSUPPORTED_STATE_DOCUMENT');
    expect(dry.message).toContain('serial 3 (versions/3.tfstate.json)');
    expect(dry.message).toContain('$.resources[0].instances[0]');
  });

  test('such as the depth that its stack allows', async () => {
    const shallow = await openBackend();
    try {
      const { pool } = shallow.database;
      const { rows } = await pool.query<{ name: string }>('select current_database() as name');
      await pool.query(`alter database "${rows[0]?.name}" set max_stack_depth = '100kB'`);
      const other = await createCaller(shallow);
      const path = inDirectory('deep.klstate');
      const rawState = unpack(caseOf('nested 3000 deep in an output').document).toString();
      await buildArchive({ versions: [{ serial: 1n, rawState }], resources: null }, path);
      // The connections that are open keep the depth they began with.
      await pool
        .query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [rows[0]?.name])
        .catch(() => {});
      const [dry, wet] = [
        await refusalOf(runImport(shallow, other, path, { dryRun: true })),
        await refusalOf(runImport(shallow, other, path)),
      ];
      expect(dry).toEqual(wet);
      expect(dry.code).toBe('UNSUPPORTED_STATE_DOCUMENT');
      expect(dry.message).toContain('serial 1 (versions/1.tfstate.json)');
    } finally {
      await shallow.close();
    }
  });
});
