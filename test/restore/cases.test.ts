import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Caller } from '../../src/history/states.ts';
import { buildArchive } from '../archive/support/build-archive.ts';
import { summed, takeApart, tarred, withJson, zstd } from '../archive/support/handmade.ts';
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
import { type Case, caseNumbers, insertHistory, loadCase } from '../support/fixtures.ts';
import { countRows, readStateRows, type StateRows } from '../support/state-rows.ts';

let source: Backend;
let elsewhere: Backend;
beforeAll(async () => {
  [source, elsewhere] = await Promise.all([openBackend(), openBackend()]);
});
afterAll(() => Promise.all([source.close(), elsewhere.close()]));

const inDirectory = temporaryDirectory();

const cases = caseNumbers().map((number) => ({ number, given: loadCase(number) }));
const titled = cases.map(({ number, given }) => ({ number, given, why: given.why }));

describe.each(titled.filter(({ given }) => given.via === 'database'))('$number: $why', ({ given }) => {
  let owner: Caller;
  let original: StateRows;
  let archive: string;
  let digest: string | undefined;

  beforeAll(async () => {
    owner = await createCaller(source);
    const { namePrefix, tenantId } = owner.namespace;
    const name = namePrefix + given.state.name;
    const { stateId } = await insertHistory(source.database, given, { tenantId, name });
    original = await readStateRows(source.database, stateId);
    const operation = await runExport(source, owner, given.state.name);
    archive = archivePath(source, operation);
    digest = operation.archive?.historyDigest;
  });

  test('comes back whole beside itself and in another backend, and again from there', async () => {
    const stranger = await createCaller(elsewhere);
    for (const [backend, caller, label] of [
      [source, owner, 'copy'],
      [elsewhere, stranger, given.state.name],
    ] as const) {
      const operation = await runImport(backend, caller, archive, { label, allowSharedLineage: true });
      const restored = await readStateRows(backend.database, stateIdOf(operation));
      // The text of every raw state, times to the microsecond, NULL and '': all of it is in the rows.
      expect(restored.state_versions).toEqual(original.state_versions);
      expect(restored.state_version_tags).toEqual(original.state_version_tags);
      expect(restored.states?.[0]).toMatchObject({
        lineage: given.state.lineage,
        current_version_id: `version ${given.expect.current_serial ?? given.current_serial}`,
        created_at: original.states?.[0]?.created_at,
      });
      expectResources(restored, given.expect);
      const expectedWarnings = [
        given.expect.warning ?? [],
        given.expect.current_serial === undefined ? [] : 'CURRENT_IS_NOT_LAST',
        // The case has no resource rows of its own, so that an archive of it has no spans to carry.
        restored.resources?.length === 0 ? [] : 'RESOURCE_SPANS_DERIVED',
      ].flat();
      const warnings = operation.report?.warnings.map(({ code }) => code) ?? [];
      expect(warnings.toSorted()).toEqual(expectedWarnings.sort());

      const again = await runExport(backend, caller, label);
      expect(again.archive?.historyDigest).toBe(digest);
    }
  });
});

function expectResources(restored: StateRows, wanted: Case['expect']): void {
  const rows = restored.resources ?? [];
  const open = rows.filter((row) => row.delete_serial === null);
  if (wanted.addresses) expect(open.map((row) => row.address).sort()).toEqual(wanted.addresses.toSorted());
  if (wanted.open_rows) {
    const ids = open.map((row) => [row.address, (JSON.parse(row.attributes ?? '') as { id: string }).id]);
    expect(ids).toEqual(wanted.open_rows);
  }
  if (wanted.spans) {
    const spans = rows.map((row) => [row.address, row.create_serial, row.delete_serial]);
    const expected = wanted.spans.map((span) => span.map((part) => (part === null ? null : String(part))));
    expect(spans.sort()).toEqual(expected.sort());
  }
}

test('a deposed object hides the current one in the rows, as in Kilolock, and the raw state keeps both', async () => {
  const caller = await createCaller(source);
  const given = loadCase('05');
  const { namePrefix, tenantId } = caller.namespace;
  await insertHistory(source.database, given, { tenantId, name: `${namePrefix}deposed` });
  const operation = await runExport(source, caller, 'deposed');
  const restored = await runImport(elsewhere, await createCaller(elsewhere), archivePath(source, operation));
  const rows = await readStateRows(elsewhere.database, stateIdOf(restored));
  expect(rows.resources?.map((row) => row.attributes)).toEqual(['{"id": "i-old"}']);
  expect(rows.state_versions?.[0]?.raw_state).toContain('i-new');
  expect(restored.report?.warnings).toContainEqual(
    expect.objectContaining({
      code: 'DEPOSED_INSTANCE',
      serial: 1n,
      message: expect.stringContaining('aws_instance.web'),
    }),
  );
});

describe.each(titled.filter(({ given }) => given.via === 'archive'))('$number: $why', ({ number, given }) => {
  test('is refused, by name, and no row is written', async () => {
    const caller = await createCaller(elsewhere);
    const path = inDirectory(`${number}.klstate`);
    await writeCase(given, path);
    const before = await countRows(elsewhere.database, ['public']);

    const refusal = await refusalOf(runImport(elsewhere, caller, path));

    expect(refusal.code).toBe(given.expect.code);
    for (const name of given.expect.names ?? []) expect(refusal.message).toContain(name);
    expect(await countRows(elsewhere.database, ['public'])).toEqual(before);
  });
});

/** Writes the archive of a case. The writer refuses a tag on nothing, so that one is put in afterwards. */
async function writeCase(given: Case, path: string): Promise<void> {
  const serials = new Set(given.versions.map(({ serial }) => serial));
  const strays = given.tags.filter(({ serial }) => !serials.has(serial));
  await buildArchive(
    {
      state: {
        label: given.state.name,
        lineage: given.state.lineage,
        ...(given.current_serial === null ? {} : { currentSerial: BigInt(given.current_serial) }),
      },
      versions: given.versions.map((version) => ({
        serial: BigInt(version.serial),
        rawState: version.raw_state,
        source: version.source,
        createdAt: version.created_at.replace(' ', 'T').replace('+00', 'Z'),
        createdBy: version.created_by,
        terraformVersion: version.terraform_version,
      })),
      tags: given.tags.map(({ tag, serial, description, actor }) => ({
        tag,
        description,
        actor,
        serial: BigInt(serials.has(serial) ? serial : (given.versions[0]?.serial ?? '0')),
      })),
    },
    path,
  );
  if (strays.length === 0) return;
  const changes = Object.fromEntries(
    given.tags.map(({ serial }, index) => [`tags.${index}.serial`, serial] as const),
  );
  const members = withJson(await takeApart(await readFile(path)), 'tags.json', changes);
  await writeFile(path, zstd(await tarred(summed(members))));
}
