import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import type { TestService } from '../../support/service.ts';

/** An environment whose states are in a database of its own. */
export interface OwnDatabaseEnvironment extends TestDatabase {
  readonly workspace: string;
  readonly environment: string;
  /** The tenant's id, as the control database knows it; the environment's own database does not know it yet. */
  readonly tenantId: string;
  /** What is part of the connection string and of nothing else. */
  readonly secret: string;
}

/** Gives an environment a new database of its own, with Kilolock's tables and the self-hosted tenant, and no states. */
export async function giveOwnDatabase(
  { database }: Pick<TestService, 'database'>,
  names: { readonly workspace: string; readonly environment: string },
): Promise<OwnDatabaseEnvironment> {
  const given = await createTestDatabase();
  const secret = `dsn-secret-${crypto.randomUUID()}`;
  const url = new URL(given.connectionString);
  // Shown by no one: the service names itself to the server.
  url.searchParams.set('fallback_application_name', secret);
  await pointTo(database, names, url.href);
  const { rows } = await database.pool.query<{ id: string }>(
    'select id from tenants where workspace_id = $1',
    [names.workspace],
  );
  const [tenant] = rows;
  if (tenant === undefined) throw new Error('There is no such tenant.');
  return { ...given, ...names, connectionString: url.href, tenantId: tenant.id, secret };
}

/** Names another database as an environment's own. */
export async function pointTo(
  { pool }: Pick<TestService['database'], 'pool'>,
  { workspace, environment }: { readonly workspace: string; readonly environment: string },
  dsn: string,
): Promise<void> {
  await pool.query(
    `update environments set database_dsn = $3, status = 'ready', tier = 'dedicated_host'
     where env_public_id = $2 and tenant_id = (select id from tenants where workspace_id = $1)`,
    [workspace, environment, dsn],
  );
}
