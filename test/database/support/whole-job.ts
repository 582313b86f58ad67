import { expect } from '@jest/globals';
import { connectDatabase } from '../../../src/database/connection.ts';
import { prepareControlDatabase } from '../../../src/database/prepare.ts';
import { refuseUnusableDatabase } from '../../../src/database/readiness.ts';
import { DigestBudget } from '../../../src/history/digest-budget.ts';
import { readManifestPreviews } from '../../../src/history/manifest-preview.ts';
import { type Caller, listStates } from '../../../src/history/states.ts';
import {
  archivePath,
  type Backend,
  runExport,
  runImport,
  stateIdOf,
} from '../../operations/support/backend.ts';

/**
 * Does the whole job with the state "app" on connections that are new, and so have whatever is set now: start, list, export,
 * import under another name, preview. `digest` is its history digest.
 */
export async function doWholeJob(
  backend: Backend,
  caller: Caller,
  digest: string,
  connectionString: string,
): Promise<void> {
  const database = connectDatabase({ connectionString });
  try {
    await prepareControlDatabase(database);
    await refuseUnusableDatabase(database);
    const who = { ...caller, database };
    const page = { labelPrefix: 'app', after: null, limit: 10 };
    expect((await listStates(database.for('read'), who, page)).map(({ label }) => label)).toEqual(['app']);
    const exported = await runExport(backend, who, 'app');
    expect(exported).toMatchObject({ status: 'SUCCEEDED', archive: { historyDigest: digest } });
    const label = `copy-${exported.id}`;
    const imported = await runImport(backend, who, archivePath(backend, exported), {
      label,
      allowSharedLineage: true,
    });
    expect(imported).toMatchObject({ status: 'SUCCEEDED', error: null });
    const id = stateIdOf(imported);
    const preview = (await readManifestPreviews(database, [id], new DigestBudget())).get(id);
    expect(preview).toMatchObject({ historyDigest: digest, versionCount: 10 });
  } finally {
    await database.close();
  }
}
