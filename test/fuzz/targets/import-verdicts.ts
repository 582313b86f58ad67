import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OperationRecord } from '../../../src/operations/operation-records.ts';
import { toUserError } from '../../../src/operations/user-error.ts';
import { type Backend, createCaller, openBackend, runImport } from '../../operations/support/backend.ts';

/** A backend that imports one archive after another, each under a name of its own. */
export interface ImportVerdicts {
  readonly backend: Backend;
  /** Where to put the next archive. */
  readonly path: string;
  /**
   * Tries the archive at `path`, and then imports it.
   *
   * @returns why it was refused, or null when it was imported.
   * @throws when the two do not say the same, or one of them fails in a way that nobody foresaw.
   */
  verdict(): Promise<string | null>;
  close(): Promise<void>;
}

export async function openImportVerdicts(): Promise<ImportVerdicts> {
  const backend = await openBackend();
  const caller = await createCaller(backend);
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-fuzz-'));
  const path = join(directory, 'archive.klstate');
  let imports = 0;
  return {
    backend,
    path,
    async verdict() {
      imports += 1;
      const input = { label: `fuzz/${imports}`, allowSharedLineage: true };
      const tried = await told(runImport(backend, caller, path, { ...input, dryRun: true }));
      const imported = await told(runImport(backend, caller, path, input));
      if (tried !== imported) throw new Error(`The dry run says ${tried}; the import says ${imported}.`);
      return imported;
    },
    async close() {
      await backend.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function told(outcome: Promise<OperationRecord>): Promise<string | null> {
  let operation: OperationRecord;
  try {
    operation = await outcome;
  } catch (error) {
    const problem = toUserError(error);
    if (problem === null) throw error;
    return `${problem.code}: ${problem.message}`;
  }
  if (operation.status === 'SUCCEEDED') return null;
  const { code, message } = operation.error ?? {};
  if (code === undefined || code === 'INTERNAL') throw new Error(`It failed with ${code}: ${message}`);
  return `${code}: ${message}`;
}
