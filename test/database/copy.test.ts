import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type DatabaseSession, inTransaction, type KilolockDatabase } from '../../src/database/connection.ts';
import { CopyError, type CopyValue, copyIntoTable, copyTextRows } from '../../src/database/copy.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let given: TestDatabase;
beforeAll(async () => {
  given = await createTestDatabase();
});
afterAll(() => given.drop());

const MiB = 1024 * 1024;

/** The value of a row that is a list, by its place there. */
const at = (place: number) => (row: readonly CopyValue[]) => row[place] ?? null;

/** A session whose transaction has ended, to see whether it outlives a failure: each statement is one by itself. */
function withSession<T>(
  database: KilolockDatabase,
  work: (session: DatabaseSession) => Promise<T>,
): Promise<T> {
  return inTransaction(database, 'export', async (session) => {
    await session.client.query('commit');
    return work(session);
  });
}

async function text(content: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}

async function* pieces(...parts: Array<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield Buffer.from(part);
}

/** `megabytes` blocks of 1 MiB, all from one buffer, as a reader that reuses its buffer would hand them out. */
async function* blocks(megabytes: number): AsyncGenerator<Uint8Array> {
  const block = Buffer.alloc(MiB);
  for (let index = 0; index < megabytes; index += 1) {
    block.fill(97 + (index % 26));
    yield block;
  }
}

const isUsable = async ({ client }: DatabaseSession) =>
  (await client.query('select 1 as one')).rows[0].one === 1;
const pidOf = async ({ client }: DatabaseSession) =>
  (await client.query('select pg_backend_pid() as pid')).rows[0].pid;

describe('rows read by COPY', () => {
  test('carry their key, their length in bytes and their text', async () => {
    const rows = await withSession(given.database, async (session) => {
      const read: unknown[] = [];
      const query = `select key, value from (values ('1', 'Zoë'), ('2', ''), ('ключ', '{"a": 1.50}')) rows (key, value)`;
      for await (const { key, byteLength, content } of copyTextRows(session, query))
        read.push([key, byteLength, await text(content)]);
      expect(await isUsable(session)).toBe(true);
      return read;
    });
    expect(rows).toEqual([
      ['1', 4, 'Zoë'],
      ['2', 0, ''],
      ['ключ', 11, '{"a": 1.50}'],
    ]);
  });

  test('may be none', async () => {
    await withSession(given.database, async (session) => {
      for await (const row of copyTextRows(session, "select '1', '' where false")) throw new Error(row.key);
      expect(await isUsable(session)).toBe(true);
    });
  });

  test('leave no more of a long text in memory than a few pieces', async () => {
    const most = await withSession(given.database, async (session) => {
      const before = process.memoryUsage().arrayBuffers;
      let most = 0;
      const query = `select '1', repeat('x', 200000000)`;
      for await (const { content } of copyTextRows(session, query)) {
        for await (const chunk of content) {
          if (chunk.length > 0) most = Math.max(most, process.memoryUsage().arrayBuffers - before);
        }
      }
      return most;
    });
    expect(most).toBeLessThan(8_000_000);
  });

  test('whose text is left unread, whole or in part, do not hold up the next', async () => {
    const keys = await withSession(given.database, async (session) => {
      const read: string[] = [];
      const query = `select number::text, repeat('x', 300000) from generate_series(1, 6) number`;
      for await (const { key, content } of copyTextRows(session, query)) {
        read.push(key);
        if (Number(key) % 2 === 0) for await (const chunk of content) if (chunk.length > 0) break;
      }
      expect(await isUsable(session)).toBe(true);
      return read;
    });
    expect(keys).toEqual(['1', '2', '3', '4', '5', '6']);
  });

  test.each([
    [
      'break',
      async (session: DatabaseSession) => {
        for await (const row of copyTextRows(session, endless)) if (row.key === '2') break;
      },
    ],
    [
      'an error',
      async (session: DatabaseSession) => {
        for await (const row of copyTextRows(session, endless))
          if (row.key === '2') throw new Error('enough');
      },
    ],
    [
      'an error in the middle of a text',
      async (session: DatabaseSession) => {
        for await (const row of copyTextRows(session, endless))
          for await (const chunk of row.content) if (chunk.length > 0) throw new Error('enough');
      },
    ],
  ])('left early by %s cost the connection, not the process or the pool', async (_, leave) => {
    const pid = await withSession(given.database, async (session) => {
      const own = await pidOf(session);
      await leave(session).catch((error: Error) => expect(error.message).toBe('enough'));
      await expect(isUsable(session)).rejects.toThrow();
      return own;
    });
    await withSession(given.database, async (session) => expect(await pidOf(session)).not.toBe(pid));
  });

  test('left early in a snapshot still give the result of the work', async () => {
    const first = await inTransaction(given.database, 'export', async (session) => {
      for await (const row of copyTextRows(session, endless)) return row.key;
      return undefined;
    });
    expect(first).toBe('1');
  });

  test('fail with the code of PostgreSQL, before the first row or after some, and the connection stays', async () => {
    await withSession(given.database, async (session) => {
      const read = async (query: string) => {
        const keys: string[] = [];
        for await (const { key, content } of copyTextRows(session, query)) {
          await text(content);
          keys.push(key);
        }
        return keys;
      };
      await expect(read('select a, b from no_such_table')).rejects.toMatchObject({ code: '42P01' });
      const late = `select number::text, repeat('x', 100000 / (50 - number)) from generate_series(1, 50) number`;
      await expect(read(late)).rejects.toMatchObject({ code: '22012' });
      expect(await isUsable(session)).toBe(true);
    });
  });

  test('fail when the connection is cut', async () => {
    await expect(
      withSession(given.database, async (session) => {
        const pid = await pidOf(session);
        for await (const { key, content } of copyTextRows(session, endless)) {
          await text(content);
          if (key === '2') await given.database.pool.query('select pg_terminate_backend($1)', [pid]);
        }
      }),
    ).rejects.toThrow();
  });

  test.each([
    ['one column', "select '1'", 'two columns'],
    ['three columns', "select '1', '2', '3'", 'two columns'],
    ['a NULL key', "select null::text, ''", 'first column'],
    ['a NULL text', "select '1', null::text", 'second column, for the key 1'],
  ])('with %s are refused', async (_, query, message) => {
    await withSession(given.database, async (session) => {
      const read = (async () => {
        for await (const row of copyTextRows(session, query)) await text(row.content);
      })();
      await expect(read).rejects.toThrow(message);
      await expect(read).rejects.toBeInstanceOf(CopyError);
    });
  });
});

const endless = "select number::text, repeat('x', 200000) from generate_series(1, 1000000) number";

describe('rows written by COPY', () => {
  const columns = [
    ['id', 'uuid', at(0)],
    ['words', 'text', at(1)],
    ['big', 'bigint', at(2)],
    ['small', 'integer', at(3)],
    ['flag', 'boolean', at(4)],
    ['document', 'jsonb', at(5)],
    ['time', 'timestamptz', at(6)],
  ] as const;

  beforeAll(async () => {
    await given.database.pool.query(`create table copied (number serial, id uuid, words text, big bigint, small integer,
      flag boolean, document jsonb, time timestamptz)`);
  });

  const write = (
    session: DatabaseSession,
    rows: Iterable<readonly CopyValue[]> | AsyncIterable<readonly CopyValue[]>,
  ) => copyIntoTable(session, 'public.copied', columns, rows);

  const written = async () => {
    const { rows } = await given.database.pool.query(`select id, words, big, small, flag, document::text,
      to_char(time at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as time from copied order by number`);
    await given.database.pool.query('truncate copied');
    return rows.map((row) => Object.values(row));
  };

  test('come back as they were, in every type, NULL and empty included', async () => {
    const id = '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10';
    const copied = await withSession(given.database, (session) =>
      write(session, [
        [
          id,
          'Zoë 🚀',
          9223372036854775807n,
          -2147483648,
          true,
          '{"a": 12345678901234567890, "b": 1.50}',
          '2026-03-02T10:00:00.000118Z',
        ],
        [
          id.toUpperCase(),
          '',
          '-9223372036854775808',
          2147483647,
          false,
          Buffer.from('[]'),
          '1999-12-31T23:59:59.999999Z',
        ],
        [
          null,
          { byteLength: 5, content: pieces('Zo', 'ë', '!') },
          0n,
          0,
          null,
          { byteLength: 8, content: pieces('{"a": ', '1}') },
          '0001-01-01T00:00:00.000000Z',
        ],
        [null, Buffer.from('bytes'), null, null, null, null, '9999-12-31T23:59:59.999999Z'],
        [null, null, null, null, null, null, '2024-02-29T00:00:00.000001Z'],
      ]),
    );
    expect(copied).toBe(5);
    expect(await written()).toEqual([
      [
        id,
        'Zoë 🚀',
        '9223372036854775807',
        -2147483648,
        true,
        '{"a": 12345678901234567890, "b": 1.50}',
        '2026-03-02T10:00:00.000118Z',
      ],
      [id, '', '-9223372036854775808', 2147483647, false, '[]', '1999-12-31T23:59:59.999999Z'],
      [null, 'Zoë!', '0', 0, null, '{"a": 1}', '0001-01-01T00:00:00.000000Z'],
      [null, 'bytes', null, null, null, null, '9999-12-31T23:59:59.999999Z'],
      [null, null, null, null, null, null, '2024-02-29T00:00:00.000001Z'],
    ]);
  });

  test('may be none', async () => {
    expect(await withSession(given.database, (session) => write(session, []))).toBe(0);
  });

  test('are all there when they are many and small', async () => {
    const count = 20_000;
    const copied = await withSession(given.database, (session) =>
      write(
        session,
        (function* () {
          for (let index = 0; index < count; index += 1)
            yield [null, `row ${index}`, BigInt(index), index, null, '{}', null] as const;
        })(),
      ),
    );
    expect(copied).toBe(count);
    const rows = await written();
    expect(
      rows.every(
        ([, words, big, small], index) =>
          words === `row ${index}` && big === String(index) && small === index,
      ),
    ).toBe(true);
  });

  test.each([
    ['shorter', { byteLength: 10, content: pieces('{"a"', ': 1}') }, 'after 8 of its 10 bytes'],
    ['longer', { byteLength: 4, content: pieces('{"a"', ': 1}') }, 'longer than its 4 bytes'],
  ])('with a text %s than promised fail as a whole, and the connection stays', async (_, value, message) => {
    await withSession(given.database, async (session) => {
      const rows = [
        [null, 'before', null, null, null, null, null],
        [null, null, null, null, null, value, null],
      ];
      await expect(write(session, rows)).rejects.toThrow(message);
      expect(await isUsable(session)).toBe(true);
    });
    expect(await written()).toEqual([]);
  });

  test('whose source fails fail with its error, and the connection stays', async () => {
    const cause = new Error('the file is gone');
    let closed = false;
    async function* rows() {
      try {
        yield [null, 'x'.repeat(MiB), null, null, null, null, null];
        throw cause;
      } finally {
        closed = true;
      }
    }
    await withSession(given.database, async (session) => {
      await expect(write(session, rows())).rejects.toBe(cause);
      expect(await isUsable(session)).toBe(true);
    });
    expect(closed).toBe(true);
    expect(await written()).toEqual([]);
  });

  test('that PostgreSQL refuses fail with its code, however much was still to come, and close their source', async () => {
    let closed = false;
    async function* rows() {
      try {
        for (let index = 0; index < 64; index += 1)
          yield [
            null,
            null,
            null,
            null,
            null,
            index === 0 ? 'no json' : { byteLength: MiB, content: blocks(1) },
            null,
          ];
      } finally {
        closed = true;
      }
    }
    await withSession(given.database, async (session) => {
      await expect(write(session, rows())).rejects.toMatchObject({ code: '22P02' });
      expect(closed).toBe(true);
      expect(await isUsable(session)).toBe(true);
      await expect(
        copyIntoTable(session, 'no_such_table', [['a', 'text', at(0)]], [['x'.repeat(MiB)]]),
      ).rejects.toMatchObject({
        code: '42P01',
      });
      expect(await isUsable(session)).toBe(true);
    });
  });

  test('that break a constraint fail with its name', async () => {
    await withSession(given.database, async (session) => {
      const rows = [['twice'], ['twice']];
      await session.client.query('create temporary table once (word text constraint only_once unique)');
      await expect(copyIntoTable(session, 'once', [['word', 'text', at(0)]], rows)).rejects.toMatchObject({
        code: '23505',
        constraint: 'only_once',
      });
      expect(await isUsable(session)).toBe(true);
    });
  });

  test('fail when the connection is cut', async () => {
    await expect(
      withSession(given.database, async (session) => {
        const pid = await pidOf(session);
        async function* rows() {
          for (let index = 0; ; index += 1) {
            yield [null, 'x'.repeat(MiB), null, null, null, null, null];
            if (index === 2) await given.database.pool.query('select pg_terminate_backend($1)', [pid]);
          }
        }
        await write(session, rows());
      }),
    ).rejects.toThrow();
  });

  test.each<[string, readonly CopyValue[], string]>([
    ['an id that is no UUID', ['7c1e5d1a', null, null, null, null, null, null], 'copied.id'],
    ['a lone surrogate', [null, '\ud800', null, null, null, null, null], 'copied.words'],
    ['a number beyond 64 bits', [null, null, 9223372036854775808n, null, null, null, null], 'copied.big'],
    ['a number beyond 32 bits', [null, null, null, 2147483648, null, null, null], 'copied.small'],
    ['a fraction', [null, null, null, 1.5, null, null, null], 'copied.small'],
    ['a word for a flag', [null, null, null, null, 'true', null, null], 'copied.flag'],
    ['30 February', [null, null, null, null, null, null, '2026-02-30T00:00:00.000000Z'], 'copied.time'],
    [
      'a time of three digits',
      [null, null, null, null, null, null, '2026-02-28T00:00:00.000Z'],
      'copied.time',
    ],
    ['the year 0', [null, null, null, null, null, null, '0000-01-01T00:00:00.000000Z'], 'copied.time'],
    ['hour 24', [null, null, null, null, null, null, '2026-02-28T24:00:00.000000Z'], 'copied.time'],
  ])('with %s are refused, naming the column', async (_, row, message) => {
    await withSession(given.database, async (session) => {
      const writing = write(session, [row]);
      await expect(writing).rejects.toThrow(message);
      await expect(writing).rejects.toBeInstanceOf(CopyError);
      expect(await isUsable(session)).toBe(true);
    });
  });
});

test('300 MB in one value go in and out with little memory', async () => {
  const megabytes = 300;
  let peak = 0;
  const watch = () => {
    const { arrayBuffers, heapUsed } = process.memoryUsage();
    peak = Math.max(peak, arrayBuffers + heapUsed);
  };
  const watched = async function* (content: AsyncIterable<Uint8Array>) {
    for await (const chunk of content) {
      watch();
      yield chunk;
    }
  };
  watch();
  const before = peak;
  await inTransaction(given.database, 'restore', async (session) => {
    await session.client.query('create temporary table large (key text, value text) on commit drop');
    // Left uncompressed, so that the time goes into the streams.
    await session.client.query('alter table large alter column value set storage external');
    const value = { byteLength: megabytes * MiB, content: watched(blocks(megabytes)) };
    expect(
      await copyIntoTable(
        session,
        'large',
        [
          ['key', 'text', at(0)],
          ['value', 'text', at(1)],
        ],
        [['1', value]],
      ),
    ).toBe(1);
    let length = 0;
    for await (const row of copyTextRows(session, 'select key, value from large')) {
      expect(row.byteLength).toBe(megabytes * MiB);
      let intact = true;
      for await (const chunk of watched(row.content)) {
        intact &&= chunk[0] === 97 + (Math.floor(length / MiB) % 26); // The letter of its block.
        length += chunk.length;
      }
      expect(intact).toBe(true);
    }
    expect(length).toBe(megabytes * MiB);
  });
  // Garbage not yet collected included: the value held whole, once, would be twice this.
  expect(peak - before).toBeLessThan((megabytes / 2) * MiB);
});
