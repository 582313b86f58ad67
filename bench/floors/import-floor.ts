import { join } from 'node:path';
import type { BenchDatabase } from '../databases.ts';
import type { CopyInTask } from './copy-in.ts';
import type { CopyOutTask } from './copy-out.ts';
import { type Measured, runLean } from './lean-process.ts';
import { HISTORY_TABLES } from './tables.ts';

/** COPY's formats. Text is what people run; binary saves the server the unescaping. */
export type CopyFormat = 'text' | 'binary';

/** Every row of a history, in files that `copy … from stdin` takes. */
export interface CopyFiles {
  /** Copies the files into an empty database of Kilolock's tables, in one session and one transaction. */
  copyInto(database: BenchDatabase, compression: CopyInTask['compression']): Promise<Measured>;
}

/** Writes such files. */
export async function writeCopyFiles(
  { connectionString }: BenchDatabase,
  directory: string,
  format: CopyFormat,
): Promise<CopyFiles> {
  const copies = (direction: 'to stdout' | 'from stdin') =>
    HISTORY_TABLES.map((table) => ({
      statement: `copy public.${table} ${direction} with (format ${format})`,
      path: join(directory, `${table}.${format}`),
    }));
  await runLean<CopyOutTask>('copy-out.ts', {
    connectionString,
    copies: copies('to stdout'),
    compression: 'none',
  });
  return {
    copyInto: (target, compression) =>
      runLean<CopyInTask>('copy-in.ts', {
        connectionString: target.connectionString,
        copies: copies('from stdin'),
        compression,
      }),
  };
}
