import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BenchDatabase } from '../databases.ts';
import { STATE_ID } from '../history/rows.ts';
import type { CopyOutTask } from './copy-out.ts';
import { type Measured, runLean } from './lean-process.ts';
import { isThere, majorVersion, runOnDatabase } from './programs.ts';
import { HISTORY_TABLES } from './tables.ts';

/** Something an expert could do with the database instead, and how it is done on this machine. */
export interface ExportFloor {
  readonly how: string;
  /** Does it to a file in `directory`. */
  run(database: BenchDatabase, directory: string): Promise<Measured>;
}

// The texts are printed above the sort, which would write them all to disk otherwise.
const RAW_STATES = `copy (select v.raw_state::text from (select raw_state from public.state_versions where state_id = '${STATE_ID}' order by serial offset 0) v) to stdout`;

/** The raw states out of one statement and through zstd, with a window that reaches over many versions. */
export async function copyFloor(): Promise<ExportFloor> {
  if ((await isThere('psql')) && (await isThere('zstd'))) {
    return {
      how: '`psql -c "copy …" \\| zstd -3 --long=27`',
      run: async ({ connectionString }, directory) => {
        const path = join(directory, 'floor.zst');
        const zstd = ['zstd', '-3', '--long=27', '-q', '-f', '-o', path] as const;
        return timed(path, () =>
          runOnDatabase(connectionString, ['psql', '-X', '-q', '-c', RAW_STATES], zstd),
        );
      },
    };
  }
  return {
    how: 'the COPY through zstd -3 --long=27 in a lean process of Node.js, for want of `psql` and `zstd`',
    run: ({ connectionString }, directory) =>
      runLean<CopyOutTask>('copy-out.ts', {
        connectionString,
        copies: [{ statement: RAW_STATES, path: join(directory, 'floor.zst') }],
        compression: 'zstd',
      }),
  };
}

/** A dump of the same rows. */
export async function dumpFloor(serverVersion: string): Promise<ExportFloor> {
  const found = await majorVersion('pg_dump');
  if (found !== null && found >= Number.parseInt(serverVersion, 10)) {
    return {
      how: '`pg_dump -Fc`',
      run: async ({ connectionString }, directory) => {
        const path = join(directory, 'floor.dump');
        const dump = ['pg_dump', '-Fc', '--schema=public', '-f', path] as const;
        return timed(path, () => runOnDatabase(connectionString, dump));
      },
    };
  }
  return {
    how: 'the COPY of every table through deflate in a lean process of Node.js, for want of a `pg_dump` as new as the server',
    run: ({ connectionString }, directory) =>
      runLean<CopyOutTask>('copy-out.ts', {
        connectionString,
        copies: HISTORY_TABLES.map((table) => ({
          statement: `copy public.${table} to stdout`,
          path: join(directory, `floor.${table}.z`),
        })),
        compression: 'deflate',
      }),
  };
}

async function timed(path: string, work: () => Promise<void>): Promise<Measured> {
  const began = performance.now();
  await work();
  const seconds = (performance.now() - began) / 1000;
  return { seconds, bytes: (await stat(path)).size };
}
