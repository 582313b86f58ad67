import { createHash, randomBytes } from 'node:crypto';
import type { Environment } from '../../../src/auth/principal.ts';
import type { KilolockDatabase } from '../../../src/database/connection.ts';

/** An environment with the ids its rows have. */
export interface TestEnvironment extends Environment {
  readonly tenantId: string;
  readonly tenantSlug: string;
  readonly environmentId: string;
  readonly environmentSlug: string;
}

/** A token as its owner has it, and its row. */
export interface TestToken {
  readonly id: string;
  readonly secret: string;
}

function unique(prefix: string): string {
  return `${prefix}${randomBytes(6).toString('hex')}`;
}

function sha256(secret: string | Buffer): Buffer {
  return createHash('sha256').update(secret).digest();
}

async function insert<Row>(
  { pool }: KilolockDatabase,
  table: string,
  values: Record<string, unknown>,
  returning: string,
): Promise<Row> {
  const columns = Object.keys(values);
  const { rows } = await pool.query(
    `insert into ${table} (${columns}) values (${columns.map((_, index) => `$${index + 1}`)}) returning ${returning}`,
    Object.values(values),
  );
  return rows[0] as Row;
}

/** A new workspace; `environmentOf` gives it environments. */
export function createWorkspace(
  database: KilolockDatabase,
  changes: Record<string, unknown> = {},
): Promise<{ tenantId: string; tenantSlug: string; workspace: string }> {
  const values = { slug: unique('acme-'), name: 'Acme', ...changes };
  return insert(
    database,
    'tenants',
    values,
    'id as "tenantId", slug as "tenantSlug", workspace_id as workspace',
  );
}

/** A new environment, in a workspace of its own unless one is given. */
export async function createEnvironment(
  database: KilolockDatabase,
  given?: { tenantId: string; tenantSlug: string; workspace: string },
): Promise<TestEnvironment> {
  const workspace = given ?? (await createWorkspace(database));
  const environment = await insert<
    Pick<TestEnvironment, 'environment' | 'environmentId' | 'environmentSlug'>
  >(
    database,
    'environments',
    { tenant_id: workspace.tenantId, slug: unique('prod-') },
    'id as "environmentId", slug as "environmentSlug", env_public_id as environment',
  );
  return { ...workspace, ...environment };
}

/** A new API token of an environment. */
export async function createApiToken(
  database: KilolockDatabase,
  { tenantId, environmentId }: TestEnvironment,
  given: { secret?: string | Buffer; name?: string } = {},
): Promise<TestToken> {
  const secret = given.secret ?? `kl_${randomBytes(32).toString('base64url')}`;
  const values = {
    tenant_id: tenantId,
    environment_id: environmentId,
    name: given.name ?? unique('ci-'),
    token_hash: sha256(secret),
    token_prefix: 'kl_',
  };
  const { id } = await insert<{ id: string }>(database, 'api_tokens', values, 'id');
  return { id, secret: secret.toString('latin1') };
}

/** A role with these permissions, granted to a token. */
export async function grantRole(
  database: KilolockDatabase,
  token: TestToken,
  permissions: readonly string[],
  [scopeKind, scopeRef]: readonly [kind: 'global' | 'tenant' | 'environment', reference: string],
  changes: Record<string, unknown> = {},
): Promise<void> {
  const role = await insert<{ id: string }>(
    database,
    'rbac_roles',
    { key: unique('role-'), name: 'Role' },
    'id',
  );
  for (const key of permissions) {
    await database.pool.query(
      `with permission as (insert into rbac_permissions (key) values ($1) on conflict (key) do update set key = $1 returning id)
       insert into rbac_role_permissions (role_id, permission_id) select $2, id from permission`,
      [key, role.id],
    );
  }
  const values = {
    subject_kind: 'api_token',
    subject_id: token.id,
    role_id: role.id,
    scope_kind: scopeKind,
    scope_ref: scopeRef,
    ...changes,
  };
  await insert(database, 'rbac_principal_roles', values, 'id');
}

/** A person with a personal access token. */
export async function createAccount(
  database: KilolockDatabase,
): Promise<TestToken & { accountId: string; email: string }> {
  const email = `${unique('ada-')}@example.com`;
  const account = await insert<{ id: string }>(
    database,
    'portal_accounts',
    { email, password_salt: 'x', password_hash: 'x' },
    'id',
  );
  const secret = `klp_${randomBytes(32).toString('base64url')}`;
  const values = { account_id: account.id, token_hash: sha256(secret), token_prefix: 'klp_' };
  const { id } = await insert<{ id: string }>(database, 'portal_personal_access_tokens', values, 'id');
  return { id, secret, accountId: account.id, email };
}

/** Makes an account a member of a workspace. */
export async function addMember(
  database: KilolockDatabase,
  { accountId }: { accountId: string },
  { tenantSlug }: { tenantSlug: string },
  role: 'owner' | 'tenant_admin' | 'billing_admin' | 'member',
): Promise<void> {
  await insert(
    database,
    'tenant_memberships',
    { tenant_slug: tenantSlug, account_id: accountId, role },
    'id',
  );
}

/** Lets an account's personal access token be used in an environment. */
export async function grantEnvironment(
  database: KilolockDatabase,
  { accountId }: { accountId: string },
  { environmentId }: TestEnvironment,
): Promise<void> {
  const values = { account_id: accountId, environment_id: environmentId };
  await insert(database, 'portal_environment_pat_grants', values, 'id');
}
