import type pg from 'pg';

/** What PostgreSQL makes of each JSON text in a jsonb column. */
export async function jsonbTexts(
  client: Pick<pg.Client | pg.Pool, 'query'>,
  texts: readonly string[],
): Promise<string[]> {
  const { rows } = await client.query<{ text: string }>(
    'select (t.json::jsonb)::text as text from unnest($1::text[]) with ordinality as t (json, n) order by n',
    [texts],
  );
  return rows.map(({ text }) => text);
}
