import type pg from 'pg';
import { databaseOn, type KilolockDatabase } from '../../../src/database/connection.ts';

/** What looks at every statement that is about to run. */
type Look = (statement: string, client: pg.PoolClient, values: readonly unknown[]) => void | Promise<void>;

/**
 * The same database with a look at every statement that is about to run, `BEGIN`, `COMMIT` and the start of a COPY
 * included. What `before` throws is what the statement fails with; it does not reach the server then. What `after`
 * throws, once the server has answered, takes the place of the answer. A COPY starts at once, whatever promise `before`
 * gives, and is not looked at afterwards.
 */
export function interceptQueries(
  database: KilolockDatabase,
  before: Look,
  after: Look = () => {},
): KilolockDatabase {
  const { reads, writes, streams, queue } = database.pools;
  const interceptedPool = (pool: pg.Pool) =>
    new Proxy(pool, {
      get(target, property) {
        if (property !== 'connect') return bound(target, property);
        return async () => intercepted(await target.connect(), before, after);
      },
    });
  const pools = {
    reads: interceptedPool(reads),
    writes: interceptedPool(writes),
    streams: interceptedPool(streams),
    queue: interceptedPool(queue),
  };
  return databaseOn(pools, () => database.close());
}

/** The same database, whose connections are lost when the server has carried `statement` out, and before it can say so. */
export function loseAnswers(
  database: KilolockDatabase,
  isLost: (statement: string) => boolean,
): KilolockDatabase {
  return interceptQueries(
    database,
    () => {},
    async (statement, client) => {
      if (isLost(statement)) await loseConnection(client);
    },
  );
}

/** Cuts a connection under the driver, and waits for the error that this is for every statement on it. */
export async function loseConnection(client: pg.PoolClient): Promise<void> {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } }).connection;
  stream.destroy();
  await client.query('select 1');
}

/** A statement that is a transaction of its own has its answer in a field; a COPY has none. */
interface Answered {
  readonly text: string;
  readonly values?: readonly unknown[];
  answer?: Promise<unknown>;
}

function intercepted(client: pg.PoolClient, before: Look, after: Look): pg.PoolClient {
  return new Proxy(client, {
    get(target, property) {
      if (property !== 'query') return bound(target, property);
      return (query: string | (pg.Submittable & Answered), given?: unknown[]) => {
        const statement = typeof query === 'string' ? query : query.text;
        const values = (typeof query === 'string' ? given : query.values) ?? [];
        if (typeof query === 'object') {
          const { answer } = query;
          if (answer === undefined) {
            before(statement, target, values);
            return target.query(query);
          }
          query.answer = (async () => {
            await before(statement, target, values);
            target.query(query);
            const result = await answer;
            await after(statement, target, values);
            return result;
          })();
          return query;
        }
        return (async () => {
          await before(statement, target, values);
          const result = await target.query(query, given);
          await after(statement, target, values);
          return result;
        })();
      };
    },
  });
}

function bound(target: object, property: string | symbol): unknown {
  const value: unknown = Reflect.get(target, property, target);
  return typeof value === 'function' ? value.bind(target) : value;
}
