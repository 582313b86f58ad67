import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { historyRows } from './rows.ts';
import type { HistoryShape } from './shape.ts';

const CHUNK_CHARACTERS = 64 * 1024;

/** Writes a history, under the name of its shape, into a database that has Kilolock's tables and no states. */
export async function insertHistory(client: pg.ClientBase, shape: HistoryShape): Promise<void> {
  // The most expensive index to fill, and none that reading a history needs.
  await client.query('drop index if exists public.resources_attributes_gin_idx');
  await client.query('begin');
  for (const { table, columns, text } of historyRows(shape)) {
    const copy = client.query(copyFrom(`copy public.${table} (${columns.join(', ')}) from stdin`));
    await pipeline(Readable.from(inChunks(text), { objectMode: false }), copy);
  }
  await client.query('commit');
  await client.query('vacuum (analyze)');
}

function* inChunks(pieces: Iterable<string>): Generator<string, void, void> {
  let chunk = '';
  for (const piece of pieces) {
    chunk += piece;
    if (chunk.length < CHUNK_CHARACTERS) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}
