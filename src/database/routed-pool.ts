import pg from 'pg';
import type { DatabaseAddress } from './dsn.ts';

/**
 * A pool whose connections are made in one of the ways that an address names: to the next host, or without TLS, when one
 * does not lead to a server that will do. What led there is taken first from then on; but only a server that says so is
 * taken for one without TLS. One that was away for a moment must not cost the encryption for good.
 */
export class RoutedPool extends pg.Pool {
  readonly #endpoints: DatabaseAddress['endpoints'];
  /** The way to begin with. */
  #first = 0;

  constructor({ endpoints, role }: DatabaseAddress, options: pg.PoolConfig) {
    super({
      ...options,
      ...endpoints[0],
      ...(role !== 'any' && { onConnect: (client) => refuseOtherRole(client, role) }),
    });
    this.#endpoints = endpoints;
    const connect = super.connect.bind(this);
    const route = async (): Promise<pg.PoolClient> => {
      const begun = this.#first;
      let first = begun;
      for (let attempt = 1; ; attempt += 1) {
        const tried = (begun + attempt - 1) % endpoints.length;
        Object.assign(this.options, endpoints[tried]);
        try {
          const client = await connect();
          if (attempt > 1) this.#first = first;
          return client;
        } catch (error) {
          if (attempt >= endpoints.length || !isWorthAnother(error)) throw error;
          const next = (tried + 1) % endpoints.length;
          if (isAboutTls(error) || !this.#leadToOneServer(tried, next)) first = next;
          // Whoever waits in the pool's queue gets a connection made in the way that was set last.
          if (isAboutTls(error) && this.#first === tried) this.#first = next;
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

  #leadToOneServer(one: number, other: number): boolean {
    const [a, b] = [this.#endpoints[one], this.#endpoints[other]];
    return a?.host === b?.host && a?.port === b?.port;
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

/** Whether the server itself says that it is not spoken to with TLS, or not without. */
function isAboutTls(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return error.code === '28000';
  return (error as Error).message === 'The server does not support SSL connections';
}

function isWorthAnother(error: unknown): boolean {
  // Starting up (57P03): another host may be up already.
  if (error instanceof pg.DatabaseError) return isAboutTls(error) || error.code === '57P03';
  const { message } = error as Error;
  // The two errors of pg-pool about the pool itself.
  return !/^timeout exceeded when trying to connect|after calling end on the pool/.test(message);
}
