import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { buildArchive } from '../archive/support/build-archive.ts';
import { until } from '../support/until.ts';
import {
  ask,
  cleanUp,
  onEmbedded,
  removeTemplate,
  startMain,
  usedDataDirectory,
} from './support/processes.ts';

afterEach(cleanUp);
afterAll(removeTemplate);

const VERSIONS = 200;
const VERSION_BYTES = 300_000;

const IMPORT = `mutation ($file: Upload!, $waitSeconds: Int!) {
  importStateArchive(input: { file: $file, waitSeconds: $waitSeconds }) {
    operation { id status report { versionCount } error { code } } userErrors { code message }
  }
}`;

interface Imported {
  readonly importStateArchive: {
    readonly operation: { readonly id: string; readonly status: string; readonly report: unknown };
    readonly userErrors: readonly unknown[];
  };
}

/** A raw state as PostgreSQL renders it, with contents that hardly compress and hardly change. */
function rawState(serial: number, contents: string): string {
  return (
    `{"serial": ${serial}, "lineage": "7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10", "outputs": {}, "version": 4, ` +
    `"resources": [{"mode": "managed", "name": "big", "type": "terraform_data", ` +
    `"provider": "provider[\\"terraform.io/builtin/terraform\\"]", ` +
    `"instances": [{"attributes": {"id": "big", "input": "${serial}-${contents}"}, "schema_version": 0}]}], ` +
    `"terraform_version": "1.11.4"}`
  );
}

test('an import killed in the middle leaves no row, and is taken up again, once', async () => {
  const DATA_DIR = await usedDataDirectory();
  const blocks = Array.from({ length: VERSION_BYTES / 64 }, (_, index) =>
    createHash('sha256').update(String(index)).digest('hex'),
  );
  const contents = blocks.join('');
  const path = `${DATA_DIR}/big.klstate`;
  await buildArchive(
    {
      state: { label: 'crash/big' },
      versions: Array.from({ length: VERSIONS }, (_, index) => ({
        serial: BigInt(index + 1),
        rawState: rawState(index + 1, contents),
      })),
      resources: null,
    },
    path,
  );
  const publicRows = async () =>
    onEmbedded<{ versions: string }>(
      DATA_DIR,
      `select (select count(*) from states) as states, (select count(*) from state_versions) as versions,
         (select count(*) from state_version_tags) as tags, (select count(*) from resources) as resources,
         (select count(*) from outputs) as outputs, (select count(*) from events) as events,
         (select count(*) from state_archive.version_mapping) as mapping`,
    );

  const first = await startMain({ DATA_DIR });
  const before = await publicRows();
  const begun = await ask<Imported>(first, IMPORT, { waitSeconds: 0 }, await openAsBlob(path));
  const { id } = begun.importStateArchive.operation;
  let bytesOnTheirWay = 0;
  while (bytesOnTheirWay < 8_000_000) {
    const [now] = await onEmbedded<{ bytes: number | null; status: string }>(
      DATA_DIR,
      `select (select max(bytes_processed)::int from pg_stat_progress_copy where command = 'COPY FROM') as bytes, status
       from state_archive.operation where id = '${id}'`,
    );
    expect(['PENDING', 'RUNNING']).toContain(now?.status);
    bytesOnTheirWay = now?.bytes ?? 0;
  }
  first.child.kill('SIGKILL');
  await first.ended;

  const again = await startMain({ DATA_DIR });
  expect(await publicRows()).toEqual(before);
  let operation: { readonly status: string } | undefined;
  await until(async () => {
    ({ stateArchiveOperation: operation } = await ask<{ stateArchiveOperation: { status: string } }>(
      again,
      `{ stateArchiveOperation(id: "${id}") { status report { versionCount } error { code } } }`,
    ));
    return !['PENDING', 'RUNNING'].includes(operation.status);
  });
  expect(operation).toEqual({ status: 'SUCCEEDED', report: { versionCount: VERSIONS }, error: null });
  const [after] = await onEmbedded<{ versions: string; attempt: number; events: string }>(
    DATA_DIR,
    `select attempt, (select count(*) from state_versions) as versions,
       (select count(*) from events where payload ->> 'archive_id' = '${id}') as events
     from state_archive.operation where id = '${id}'`,
  );
  expect(after).toEqual({
    versions: String(Number(before[0]?.versions) + VERSIONS),
    attempt: 2,
    events: '1',
  });
  again.child.kill('SIGTERM');
  expect(await again.ended).toMatchObject({ exitCode: 0 });
});
