import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { constants, createDeflate, createZstdCompress } from 'node:zlib';
import pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { measureTask } from './lean-process.ts';

/** @file A lean process: copies what queries give to files, one after another. */

/** `zstd` as `zstd -3 --long=27`, `deflate` as `pg_dump -Fc`. */
export interface CopyOutTask {
  readonly connectionString: string;
  readonly copies: readonly { readonly statement: string; readonly path: string }[];
  readonly compression: 'zstd' | 'deflate' | 'none';
}

await measureTask<CopyOutTask>(async ({ connectionString, copies, compression }) => {
  const client = new pg.Client({ connectionString });
  await client.connect();
  let bytes = 0;
  for (const { statement, path } of copies) {
    const rows = client.query(copyTo(statement));
    const file = createWriteStream(path);
    if (compression === 'none') await pipeline(rows, file);
    else await pipeline(rows, compression === 'zstd' ? zstd() : createDeflate(), file);
    bytes += file.bytesWritten;
  }
  await client.end();
  return bytes;
});

function zstd() {
  return createZstdCompress({
    params: {
      [constants.ZSTD_c_compressionLevel]: 3,
      [constants.ZSTD_c_enableLongDistanceMatching]: 1,
      [constants.ZSTD_c_windowLog]: 27,
    },
  });
}
