import type pg from 'pg';
import type { KilolockDatabase } from '../../../src/database/connection.ts';

/**
 * The same database with a look at every statement that a session is about to run: `BEGIN`, `COMMIT` and the start of a
 * COPY included. What `before` throws is what the statement fails with; it does not reach the server then. A COPY starts
 * at once, whatever promise `before` gives.
 */
export function interceptQueries(
  database: KilolockDatabase,
  before: (statement: string, client: pg.PoolClient) => void | Promise<void>,
): KilolockDatabase {
  const pool = new Proxy(database.pool, {
    get(target, property) {
      if (property !== 'connect') return bound(target, property);
      return async () => intercepted(await target.connect(), before);
    },
  });
  return { ...database, pool };
}

function intercepted(
  client: pg.PoolClient,
  before: (statement: string, client: pg.PoolClient) => void | Promise<void>,
): pg.PoolClient {
  return new Proxy(client, {
    get(target, property) {
      if (property !== 'query') return bound(target, property);
      return (query: string | { text: string }, values?: unknown[]) => {
        const statement = typeof query === 'string' ? query : query.text;
        if (typeof query === 'object' && 'submit' in query) {
          before(statement, target);
          return target.query(query as unknown as pg.Submittable);
        }
        return Promise.resolve(before(statement, target)).then(() => target.query(query as string, values));
      };
    },
  });
}

function bound(target: object, property: string | symbol): unknown {
  const value: unknown = Reflect.get(target, property, target);
  return typeof value === 'function' ? value.bind(target) : value;
}
