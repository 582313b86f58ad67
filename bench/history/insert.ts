import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { historyRows } from './rows.ts';
import type { HistoryShape } from './shape.ts';

const CHUNK_CHARACTERS = 64 * 1024;

/** Writes a history, under the name of its shape, into a database that has Kilolock's tables and no states. */
export async function insertHistory(client: pg.ClientBase, shape: HistoryShape): Promise<void> {
  await client.query('begin');
  // For the indexes of millions of rows.
  await client.query("set local maintenance_work_mem = '512MB'");
  const indexes = await dropIndexes(client);
  for (const { table, columns, text } of historyRows(shape)) {
    const copy = client.query(copyFrom(`copy public.${table} (${columns.join(', ')}) from stdin`));
    await pipeline(Readable.from(inChunks(text), { objectMode: false }), copy);
  }
  for (const { definition } of indexes) await client.query(definition);
  await client.query('commit');
  await client.query('vacuum (analyze)');
}

/**
 * Drops those of the largest table, which are made in a fraction of the time when the rows are there. The most expensive one
 * is not made again: nothing that reads a history needs it.
 */
async function dropIndexes(client: pg.ClientBase): Promise<{ readonly definition: string }[]> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
     from pg_index where indrelid = 'public.resources'::regclass
       and not exists (select from pg_constraint where conindid = indexrelid)`,
  );
  for (const { name } of rows) await client.query(`drop index ${name}`);
  return rows.filter(({ definition }) => !definition.includes(' USING gin '));
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
