import { readFileSync } from 'node:fs';
import pg from 'pg';
import { parse } from 'yaml';
import { present } from '../../../src/base/invariant.ts';
import type { KilolockDatabase } from '../../../src/database/connection.ts';
import { createApiToken, createEnvironment } from '../../auth/support/kilolock-tenancy.ts';
import { Machine, type Role } from '../../chaos/machines.ts';
import { createTestDatabase } from '../../support/database.ts';
import { freePort } from '../../support/free-port.ts';
import { startS3Server } from '../../support/s3-server.ts';
import { start, temporaryDirectory } from './processes.ts';

/** What `examples/compose/compose.yaml` describes, as processes on a database and a bucket of the tests' own. */
export interface Deployment {
  readonly database: KilolockDatabase;
  /** Where the replicas answer GraphQL. They share nothing but the database, the bucket and their settings. */
  readonly endpoints: readonly string[];
  /** A token of Kilolock's own, of the one environment there is. */
  readonly token: string;
  /** What `LINK_KEYS` says at first. */
  readonly linkKeys: string;
  /** Does what the services `rights` and `migrate` do. */
  prepare(): Promise<void>;
  /** Ends every process and starts all anew, with these variables changed. */
  restart(changes: Readonly<Record<string, string>>): Promise<void>;
  /** Ends every process as an operator does, and removes the rest. */
  stop(): Promise<void>;
}

interface ComposeService {
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

const COMPOSE = new URL('../../../examples/compose/compose.yaml', import.meta.url);
const RIGHTS = new URL('../../../docs/rights.sql', import.meta.url);
const PROCESSES = ['replica-1', 'replica-2', 'worker'] as const;
const ROLE = 'state_archive_service';
const PATIENCE_MS = 60_000;

/** @param name tells deployments of one PostgreSQL apart. */
export async function startDeployment(name: string): Promise<Deployment> {
  const { services } = parse(readFileSync(COMPOSE, 'utf8'), { merge: true }) as {
    services: Readonly<Record<(typeof PROCESSES)[number] | 'migrate', ComposeService>>;
  };
  const [test, storage] = await Promise.all([createTestDatabase(), startS3Server()]);
  const { database } = test;
  const role = `${ROLE}_${name}_${process.pid}`;
  const password = `a password of ${name}`;
  const given = {
    SERVICE_PASSWORD: password,
    KILOLOCK_PASSWORD: 'not asked for here',
    STORAGE_SECRET: 'not asked for here',
    LINK_KEYS: `the first key of ${name} which is long enough`,
    PUBLIC_URL: '',
  };

  // As Kilolock leaves a database: nothing of ours is there. Then what the service `rights` does.
  await database.pool.query('drop schema state_archive, state_archive_queue cascade');
  await database.pool.query(readFileSync(RIGHTS, 'utf8').replaceAll(ROLE, role));
  await database.pool.query(`alter role ${pg.escapeIdentifier(role)} password ${pg.escapeLiteral(password)}`);

  /** What a service's process finds in its environment, where the hosts that Compose names are those of this machine. */
  const environmentOf = ({ environment }: ComposeService): Record<string, string> => {
    const filled = Object.fromEntries(
      Object.entries(environment).map(([key, value]) => [key, fillIn(value, given)]),
    );
    const { DATABASE_URL } = filled;
    const address = new URL(test.connectionString);
    if (new URL(present(DATABASE_URL, 'every process has a database')).username === ROLE) {
      address.username = role;
      address.password = password;
    }
    return {
      ...filled,
      DATABASE_URL: address.href,
      ...(filled.AWS_ENDPOINT_URL_S3 !== undefined && storage.environment),
    };
  };

  const prepare = async () => {
    await database.pool.query(readFileSync(RIGHTS, 'utf8').replaceAll(ROLE, role));
    await database.pool.query(
      `alter role ${pg.escapeIdentifier(role)} password ${pg.escapeLiteral(password)}`,
    );
    const { exitCode, stderr } = await start('src/cli/migrate.ts', environmentOf(services.migrate)).ended;
    if (exitCode !== 0) throw new Error(`"migrate" failed: ${stderr}`);
  };
  // As Kilolock leaves a database: nothing of ours is there.
  await database.pool.query('drop schema state_archive, state_archive_queue cascade');
  await prepare();
  const { ARCHIVE_STORE_URL } = environmentOf(services['replica-1']);
  storage.createBucket(new URL(present(ARCHIVE_STORE_URL, 'a replica has a store')).hostname);

  const seats = await Promise.all(
    PROCESSES.map(async (service) => {
      const port = await freePort();
      const environment: Readonly<Record<string, string>> = {
        ...environmentOf(services[service]),
        PUBLIC_URL: `http://127.0.0.1:${port}`,
        DATA_DIR: await temporaryDirectory(),
        // Nobody balances here, who would have to be told.
        DRAIN_SECONDS: '0',
      };
      const role: Role = service === 'worker' ? 'worker' : 'replica';
      return { role, name: `${name} ${service}`, port, environment };
    }),
  );
  const startMachine = async (
    { role, name, port, environment }: (typeof seats)[number],
    changes: Readonly<Record<string, string>> = {},
  ) => {
    const machine = new Machine(name, role, { port, environment: { ...environment, ...changes } });
    machine.start();
    await machine.ready;
    if (machine.deaths.length > 0) throw new Error(machine.deaths.join('\n'));
    return machine;
  };
  let machines = await Promise.all(seats.map((seat) => startMachine(seat)));
  const stopMachine = async (machine: Machine) => {
    const ended = await machine.stop(PATIENCE_MS);
    if (ended !== 'ended') throw new Error(`${machine.name}: ${ended}`);
  };

  const { secret } = await createApiToken(database, await createEnvironment(database));
  return {
    database,
    token: secret,
    get endpoints() {
      return machines.flatMap(({ url }) => (url === '' ? [] : [`${url}/graphql`]));
    },
    linkKeys: given.LINK_KEYS,
    prepare,
    async restart(changes) {
      await Promise.all(machines.map(stopMachine));
      machines = await Promise.all(seats.map((seat) => startMachine(seat, changes)));
    },
    async stop() {
      await Promise.all(machines.map(stopMachine));
      await storage.close();
      await database.pool.query(`drop owned by ${role}`);
      await database.pool.query(`drop role ${role}`);
      await test.drop();
    },
  };
}

/** Fills in `${NAME:?}` and `${NAME:-default}`, as Compose does. */
function fillIn(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(\w+)(?::\?|:-([^}]*))\}/g, (_whole, name: string, otherwise?: string) =>
    present(variables[name] || otherwise, `compose.yaml asks for ${name}`),
  );
}
