import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { Changes, Version } from '../documents.ts';
import { RAW_STATES, VERSION_MAPPING, VERSIONS } from '../documents.ts';
import { LOW_POINTER, ODD_NAME } from '../histories/posted.ts';
import type { Part } from '../part.ts';
import type { Database } from '../postgres.ts';
import { rowsOf, sameRows } from '../rows.ts';
import type { Backend, Stage } from '../stage.ts';
import type { WorkingDirectory } from '../working-directory.ts';
import { histories } from './histories.ts';

export const roundTrip: Part = {
  name: 'round-trip',
  title: 'Round trip: preview, export from A, restore in B, row by row',
  needs: [],
  after: [histories],
  async run(stage) {
    const [a] = await stage.backends();
    const schema = await publicSchema(a.database);
    for (const name of [...stage.works.keys(), ODD_NAME, LOW_POINTER]) {
      await checkPreview(stage, a, name);
      const work = stage.works.get(name);
      if (work !== undefined) await checkChanges(stage, a, work);
      await checkRestore(stage, name);
    }
    await stage.report.check("Kilolock's own tables are as Kilolock made them", async () =>
      deepStrictEqual(await publicSchema(a.database), schema),
    );
  },
};

/** What the preview says, against the same facts asked of the tables by SQL. */
async function checkPreview({ report }: Stage, { archives, database }: Backend, name: string): Promise<void> {
  const id = await database.stateId(name);
  await report.check(`${name}: the preview says what is in the tables`, async () => {
    const manifest = await archives.manifest(name);
    const [expected] = await database.rows<Record<string, unknown>>(MANIFEST_BY_SQL, [id]);
    const told = Object.fromEntries(Object.keys(expected ?? {}).map((field) => [field, manifest[field]]));
    deepStrictEqual({ ...told, sources: manifest.sources.toSorted() }, expected);
    return `${Object.keys(told).length} fields`;
  });
  await report.check(`${name}: each version is listed as it is in the tables`, async () => {
    const expected = await database.rows(VERSIONS_BY_SQL, [id]);
    const listed = await versionsOf({ archives }, name);
    deepStrictEqual(
      listed.map(({ changes: _, ...version }) => ({
        ...version,
        outputNames: version.outputNames.toSorted(),
      })),
      expected,
    );
    return `${listed.length} versions`;
  });
}

const MANIFEST_BY_SQL = `
  select
    (select min(serial)::text from state_versions where state_id = states.id) as "firstSerial",
    (select max(serial)::text from state_versions where state_id = states.id) as "lastSerial",
    (select count(*)::int from state_versions where state_id = states.id) as "versionCount",
    (select count(*)::int from state_version_tags where state_id = states.id) as "tagCount",
    (select count(*)::int from resources where state_id = states.id) as "resourceSpanCount",
    (select sum(octet_length(raw_state::text))::text from state_versions where state_id = states.id) as "rawBytes",
    (select serial::text from state_versions where id = current_version_id) as "currentSerial",
    current_version_id::text as "currentVersionId",
    lineage::text,
    (select count(*)::int from events where state_id = states.id and kind not in
      ('lock_acquire', 'lock_release', 'lock_force_release', 'state_export', 'state_archive_download')) as "eventCount",
    (select array_agg(distinct source collate "C") from state_versions where state_id = states.id) as sources
  from states where id = $1`;

const VERSIONS_BY_SQL = `
  select serial::text, id = (select current_version_id from states where id = state_id) as "isCurrent",
    terraform_version as "terraformVersion", source, created_by as "createdBy",
    octet_length(raw_state::text)::text as "sizeBytes",
    encode(sha256(convert_to(raw_state::text, 'UTF8')), 'hex') as sha256,
    (select count(*)::int from resources where resources.state_id = version.state_id and create_serial <= serial
      and (delete_serial is null or delete_serial > serial)) as "resourceCount",
    (select coalesce(array_agg(outputs.name order by outputs.name collate "C"), '{}') from outputs
      where state_version_id = version.id) as "outputNames"
  from state_versions version where state_id = $1 order by version.serial desc`;

async function versionsOf({ archives }: Pick<Backend, 'archives'>, name: string): Promise<Version[]> {
  const { data, messages } = await archives.ask<{
    stateArchive: { versions: { nodes: Version[] } } | null;
  }>(VERSIONS, { name });
  deepStrictEqual(messages, []);
  return data?.stateArchive?.versions.nodes ?? [];
}

/** The changes of every version, against what Kilolock's own tool finds. */
async function checkChanges({ report }: Stage, a: Backend, work: WorkingDirectory): Promise<void> {
  const { state } = work;
  await report.check(`${state}: what each version changed is what kl diff finds`, async () => {
    const versions = (await versionsOf(a, state)).reverse();
    const told: Record<string, Changes> = {};
    const found: Record<string, Changes> = {};
    for (const [index, { serial, changes }] of versions.entries()) {
      const before = versions[index - 1];
      if (before === undefined) continue;
      const range = ['--from', before.serial, '--to', serial];
      const { stdout } = await work.kl(['diff', ...range, '--summary', '--format', 'json', state]);
      const { added, changed, removed } = (JSON.parse(stdout) as { counts: Changes }).counts;
      told[serial] = changes;
      found[serial] = { added, changed, removed };
    }
    deepStrictEqual(told, found);
    return `${Object.keys(told).length} versions`;
  });
}

async function checkRestore(stage: Stage, name: string): Promise<void> {
  const { report } = stage;
  const [a, b] = await stage.backends();
  const manifest = await a.archives.manifest(name);
  const exported = await a.archives.export(name);
  stage.exports.set(name, exported);
  await report.check(`${name}: the archive has the digest that the preview foretold`, () => {
    strictEqual(exported.historyDigest, manifest.historyDigest);
    return `${exported.bytes.length} bytes`;
  });
  await report.check(`${name}: an export changes nothing that an archive carries`, async () =>
    deepStrictEqual(await a.archives.manifest(name), manifest),
  );

  const before = await b.database.value('select count(*) from states');
  const rehearsed = await b.archives.import(exported.bytes, { dryRun: true });
  await report.check(`${name}: a dry run finds nothing against it and writes nothing`, async () => {
    deepStrictEqual(rehearsed.messages, []);
    strictEqual(await b.database.value('select count(*) from states'), before);
  });
  const restored = await b.archives.import(exported.bytes);
  await report.check(`${name}: it is restored under its name`, () => {
    deepStrictEqual(restored.messages, []);
    strictEqual(restored.operation?.report?.outcome, 'CREATED');
    return restored.operation.report.warnings.map(({ code }) => code);
  });
  await report.check(`${name}: the dry run foretold the report`, () =>
    deepStrictEqual({ ...rehearsed.operation?.report, dryRun: false }, restored.operation?.report),
  );
  await report.check(`${name}: spans are carried, or derived where the source contradicts itself`, () =>
    strictEqual(restored.operation?.report?.resourceSpansDerived, name === LOW_POINTER),
  );
  const again = await b.archives.export(name);
  await report.check(`${name}: exported from B it has the digest it had in A`, () =>
    strictEqual(again.historyDigest, exported.historyDigest),
  );
  await report.check(`${name}: B's preview is A's, and one event more`, async () => {
    const { currentVersionId: _, ...there } = await b.archives.manifest(name);
    const { currentVersionId: __, ...here } = manifest;
    const derived = name === LOW_POINTER ? { resourceSpanCount: there.resourceSpanCount } : {};
    deepStrictEqual(there, { ...here, ...derived, eventCount: here.eventCount + 1 });
  });
  await checkRows(stage, name);
  await checkRawStates(stage, name);
  await checkMapping(stage, name);
}

async function checkRows({ report, backends }: Stage, name: string): Promise<void> {
  const [a, b] = await backends();
  if (name === LOW_POINTER) {
    await report.check(`${name}: the open rows are those of the current version`, async () => {
      const open = `select address from resources where delete_serial is null and state_id = $1 order by address`;
      const [here, there] = await Promise.all(
        [a, b].map(async ({ database }) => database.rows(open, [await database.stateId(name)])),
      );
      deepStrictEqual(there, here);
    });
    return;
  }
  await report.check(`${name}: every row of every table and view is the source's`, async () =>
    sameRows(await rowsOf(a.database, name), await rowsOf(b.database, name)),
  );
}

async function checkRawStates({ report, backends }: Stage, name: string): Promise<void> {
  const [a, b] = await backends();
  await report.check(`${name}: both klds give out the same document, and rawState is that`, async () => {
    const documents = await Promise.all(
      [a, b].map(async ({ kld }) => (await kld.administer(name, 'GET', 'state/current')).body),
    );
    const [here, there] = documents.map((body) => (body as { raw_state: string }).raw_state);
    ok(here !== undefined && here.length > 2);
    strictEqual(there, here);
    const { data } = await a.archives.ask<{
      stateArchive: { versions: { nodes: { isCurrent: boolean; rawState: string }[] } };
    }>(RAW_STATES, { name });
    strictEqual(data?.stateArchive.versions.nodes.find(({ isCurrent }) => isCurrent)?.rawState, here);
    return `${here.length} characters`;
  });
}

async function checkMapping({ report, backends }: Stage, name: string): Promise<void> {
  const [a, b] = await backends();
  await report.check(`${name}: the version mapping leads from A's ids to B's`, async () => {
    const { data } = await b.archives.ask<{
      stateArchive: {
        status: {
          lastImport: {
            versionMapping: { nodes: { serial: string; sourceVersionId: string; versionId: string }[] };
          };
        };
      };
    }>(VERSION_MAPPING, { name });
    const idsOf = async ({ database }: Backend) =>
      new Map(
        (
          await database.rows<{ serial: string; id: string }>(
            'select serial, id from state_versions where state_id = $1',
            [await database.stateId(name)],
          )
        ).map(({ serial, id }) => [serial, id]),
      );
    const [here, there] = [await idsOf(a), await idsOf(b)];
    const mapped = data?.stateArchive.status.lastImport.versionMapping.nodes ?? [];
    deepStrictEqual(new Map(mapped.map(({ serial, sourceVersionId }) => [serial, sourceVersionId])), here);
    deepStrictEqual(new Map(mapped.map(({ serial, versionId }) => [serial, versionId])), there);
    return `${mapped.length} versions`;
  });
}

async function publicSchema(database: Database): Promise<unknown[]> {
  return database.rows(
    `select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns
     where table_schema = 'public' order by table_name, ordinal_position`,
  );
}
