import type { Kysely } from 'kysely';
import type { KilolockDatabase } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import { isUseWorthNoting, noteUse } from './last-use.ts';
import type { Grant, Principal } from './principal.ts';
import { listRoleGrants } from './role-grants.ts';
import { policyScopes, type TokenPolicy } from './token-policy.ts';

/**
 * Finds who an API token stands for (data model 7.2 and 7.4). The token, its tenant and its environment must be active.
 * In its own environment it may read, and what the policy adds; anything else, there or elsewhere, is by its roles.
 *
 * @param presented.hash SHA-256 of the whole token.
 * @param presented.hint the workspace it is said to belong to, by public id or slug; null: whichever.
 */
export async function verifyApiToken(
  database: KilolockDatabase,
  policy: TokenPolicy,
  { hash, hint }: { readonly hash: Buffer; readonly hint: string | null },
): Promise<Principal | null> {
  const db = database.for('read');
  const token = await findActiveToken(db).where('api_tokens.token_hash', '=', hash).executeTakeFirst();
  if (token === undefined) return null;
  if (hint !== null && hint !== token.workspace && hint !== token.tenantSlug) return null;
  if (token.isUseWorthNoting) await noteUse(database, 'api_tokens', token.id);
  return principalOf(db, policy, token);
}

/** Who an API token stands for now, by the id of its row; null when it is no longer active. */
export async function readApiToken(
  database: KilolockDatabase,
  policy: TokenPolicy,
  id: string,
): Promise<Principal | null> {
  const db = database.for('read');
  const token = await findActiveToken(db).where('api_tokens.id', '=', id).executeTakeFirst();
  return token === undefined ? null : principalOf(db, policy, token);
}

type ActiveToken = NonNullable<Awaited<ReturnType<ReturnType<typeof findActiveToken>['executeTakeFirst']>>>;

async function principalOf(
  db: Kysely<Database>,
  policy: TokenPolicy,
  token: ActiveToken,
): Promise<Principal> {
  const { id, workspace, environment } = token;
  const own: Grant = {
    scopes: policyScopes(policy),
    reach: { kind: 'environment', workspace, environment },
  };
  const grants = [own, ...(await listRoleGrants(db, id))];
  return {
    token: { kind: 'api-token', tokenId: id },
    subject: `kilolock:api-token:${id}`,
    // As Kilolock itself names it in history (data model 6).
    actor: `${token.tenantSlug}/${token.environmentSlug}/${token.name}`,
    scopes: new Set(grants.flatMap(({ scopes }) => [...scopes])),
    workspace,
    environment,
    statePatterns: null,
    grants,
  };
}

function findActiveToken(db: Kysely<Database>) {
  return db
    .selectFrom('api_tokens')
    .innerJoin('environments', (join) =>
      join
        .onRef('environments.id', '=', 'api_tokens.environment_id')
        .onRef('environments.tenant_id', '=', 'api_tokens.tenant_id'),
    )
    .innerJoin('tenants', 'tenants.id', 'environments.tenant_id')
    .select([
      'api_tokens.id',
      'api_tokens.name',
      'tenants.workspace_id as workspace',
      'tenants.slug as tenantSlug',
      'environments.env_public_id as environment',
      'environments.slug as environmentSlug',
      isUseWorthNoting('api_tokens').as('isUseWorthNoting'),
    ])
    .where('api_tokens.revoked_at', 'is', null)
    .where('api_tokens.lifecycle_status', '=', 'active')
    .where('tenants.lifecycle_status', '=', 'active')
    .where('environments.lifecycle_status', '=', 'active');
}
