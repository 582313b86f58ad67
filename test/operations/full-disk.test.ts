import { execFileSync } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loadSampleHistory, SAMPLE_LABEL } from '../../src/development/sample-history.ts';
import { filesBelow } from '../support/files-below.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** @file Docs: docs/operations.md, "A disk that is full". */

const BYTES = 1024 * 1024;

/** A file system of its own is root's to make. */
const mayMount = process.platform === 'linux' && process.getuid?.() === 0;

let service: TestService;
let archive: Uint8Array<ArrayBuffer>;
beforeAll(async () => {
  service = await startTestService();
  await loadSampleHistory(service.database);
  const { operation } = await exportSample();
  const file = await fetch(operation?.archive?.downloadUrl ?? '');
  archive = new Uint8Array(await file.arrayBuffer());
});
afterAll(() => service.stop());

interface Ended {
  readonly operation: {
    readonly id: string;
    readonly status: string;
    readonly archive: { readonly downloadUrl: string } | null;
  } | null;
  readonly userErrors: readonly { readonly code: string; readonly message: string }[];
}

const ENDED = 'operation { id status archive { downloadUrl } } userErrors { code message }';

async function exportSample(waitSeconds = 25): Promise<Ended> {
  const { data } = await service.ask<{ exportStateArchive: Ended }>(
    `mutation { exportStateArchive(input: { name: "${SAMPLE_LABEL}", waitSeconds: ${waitSeconds} }) { ${ENDED} } }`,
  );
  return data.exportStateArchive;
}

async function importAs(name: string): Promise<Ended> {
  const { data } = await service.ask<{ importStateArchive: Ended }>(
    `mutation ($file: Upload!) {
      importStateArchive(input: { file: $file, name: "${name}", allowSharedLineage: true }) { ${ENDED} } }`,
    { file: { bytes: archive } },
  );
  return data.importStateArchive;
}

/** Does some work while a directory of the service is a full disk; nothing of it may be left there. */
async function onFullDisk(directory: string, work: () => Promise<void>): Promise<void> {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${BYTES}`, 'tmpfs', directory]);
  try {
    await writeFile(join(directory, 'filler'), Buffer.alloc(2 * BYTES)).catch(() => {});
    await work();
    await until(async () => (await filesBelow(directory)).length === 1);
  } finally {
    execFileSync('umount', [directory]);
  }
}

const FULL = 'The disk that the service works on is full.';

(mayMount ? describe : describe.skip)('on a full disk', () => {
  test('an import says so, leaves nothing, and can be asked for again, while reads go on', async () => {
    const scratch = join(service.dataDirectory, 'scratch');
    const [own = ''] = await readdir(scratch);
    await onFullDisk(join(scratch, own), async () => {
      expect(await importAs('restored')).toEqual({
        operation: null,
        userErrors: [{ code: 'OPERATION_INTERRUPTED', message: `${FULL} Nothing was written; ask again.` }],
      });
      const { data } = await service.ask(
        `{ stateArchive(name: "${SAMPLE_LABEL}") { manifest { versionCount } } }`,
      );
      expect(data).toEqual({ stateArchive: { manifest: { versionCount: 10 } } });
    });
    expect((await importAs('restored')).operation?.status).toBe('SUCCEEDED');
  });

  test('an export leaves nothing, and goes on by itself once there is room', async () => {
    let id = '';
    await onFullDisk(join(service.dataDirectory, 'store', 'archives'), async () => {
      id = (await exportSample(0)).operation?.id ?? '';
      await until(() => service.log.some((line) => line.includes(id) && line.includes('ENOSPC')));
    });
    await until(async () => (await statusOf(id)) === 'SUCCEEDED');
  });
});

async function statusOf(id: string): Promise<string> {
  const { data } = await service.ask<{ stateArchiveOperation: { status: string } }>(
    'query ($id: ID!) { stateArchiveOperation(id: $id) { status } }',
    { variables: { id } },
  );
  return data.stateArchiveOperation.status;
}
