import pg from 'pg';
import type { DatabaseAddress } from './dsn.ts';

/**
 * A pool whose connections are made in one of the ways that an address names: to the next host, or without TLS, when one
 * does not lead to a server that will do. The way that led there is taken first from then on.
 */
export class RoutedPool extends pg.Pool {
  readonly #endpoints: DatabaseAddress['endpoints'];
  #current = 0;

  constructor({ endpoints, role }: DatabaseAddress, options: pg.PoolConfig) {
    super({
      ...options,
      ...endpoints[0],
      ...(role !== 'any' && { onConnect: (client) => refuseOtherRole(client, role) }),
    });
    this.#endpoints = endpoints;
    const connect = super.connect.bind(this);
    const route = async (): Promise<pg.PoolClient> => {
      for (let attempt = 1; ; attempt += 1) {
        const tried = this.#current;
        Object.assign(this.options, this.#endpoints[tried]);
        try {
          return await connect();
        } catch (error) {
          if (attempt >= this.#endpoints.length || !isWorthAnother(error)) throw error;
          // Whoever failed at the same moment may have moved on already.
          if (this.#current === tried) this.#current = (tried + 1) % this.#endpoints.length;
        }
      }
    };
    // pg-pool calls `connect` with a callback for its own `query`.
    this.connect = ((callback?: ConnectCallback) => {
      if (callback === undefined) return route();
      route().then(
        (client) => callback(undefined, client, client.release.bind(client)),
        (error: Error) => callback(error, undefined, () => {}),
      );
      return undefined;
    }) as typeof this.connect;
  }
}

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void;

/** The server is not one that the address asks for. */
class OtherRoleError extends Error {
  override readonly name = 'OtherRoleError';
}

async function refuseOtherRole(client: pg.ClientBase, role: 'primary' | 'standby'): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>(
    'select pg_catalog.pg_is_in_recovery() as standby',
  );
  if (rows[0]?.standby !== (role === 'standby')) throw new OtherRoleError(`The server is no ${role}.`);
}

function isWorthAnother(error: unknown): boolean {
  // Refused for how it was asked, with TLS or without (28000), or starting up (57P03).
  if (error instanceof pg.DatabaseError) return ['28000', '57P03'].includes(error.code ?? '');
  const { message } = error as Error;
  // The two errors of pg-pool about the pool itself.
  return !/^timeout exceeded when trying to connect|after calling end on the pool/.test(message);
}
