import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { measureTask } from './lean-process.ts';

/** @file A lean process: copies files into tables, one after another, in one transaction. */

export interface CopyInTask {
  readonly connectionString: string;
  readonly copies: readonly { readonly statement: string; readonly path: string }[];
  /** How PostgreSQL compresses large values. */
  readonly compression: 'pglz' | 'lz4';
}

await measureTask<CopyInTask>(async ({ connectionString, copies, compression }) => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(`begin; set local default_toast_compression = ${compression}`);
  for (const { statement, path } of copies) {
    await pipeline(createReadStream(path), client.query(copyFrom(statement)));
  }
  await client.query('commit');
  await client.end();
  return 0;
});
