import type { Kysely } from 'kysely';
import type { KilolockDatabase } from '../database/connection.ts';
import type { Database } from '../database/types.ts';
import { isUseWorthNoting, noteUse } from './last-use.ts';
import type { Grant, Principal } from './principal.ts';
import { policyScopes, type TokenPolicy } from './token-policy.ts';

/**
 * Finds who a personal access token stands for (data model 7.3 and 7.4). The account must own or administer an active
 * workspace, and in it have an active environment that is its own (a personal workspace) or was granted to it.
 *
 * Such a token is for no one environment: the principal holds a grant for each, and looks labels up in the only one
 * there is or in none. Where the policy adds nothing to reading, no such token is accepted.
 *
 * @param presented.hash SHA-256 of the whole token.
 * @param presented.hint the public id of the workspace it is to be used in; null: every one.
 */
export async function verifyPersonalAccessToken(
  database: KilolockDatabase,
  policy: TokenPolicy,
  { hash, hint }: { readonly hash: Buffer; readonly hint: string | null },
): Promise<Principal | null> {
  if (!policy.export && !policy.import) return null;
  const found = await findActiveEnvironments(database.for('read'))
    .where('portal_personal_access_tokens.token_hash', '=', hash)
    .execute();
  const rows = found.filter(({ workspace }) => hint === null || workspace === hint);
  const [first] = rows;
  if (first?.isUseWorthNoting) await noteUse(database, 'portal_personal_access_tokens', first.tokenId);
  return principalOf(policy, rows);
}

/** Who a personal access token stands for now, by the id of its row; null when it is no longer active. */
export async function readPersonalAccessToken(
  database: KilolockDatabase,
  policy: TokenPolicy,
  id: string,
): Promise<Principal | null> {
  if (!policy.export && !policy.import) return null;
  const rows = await findActiveEnvironments(database.for('read'))
    .where('portal_personal_access_tokens.id', '=', id)
    .execute();
  return principalOf(policy, rows);
}

type ActiveEnvironment = Awaited<ReturnType<ReturnType<typeof findActiveEnvironments>['execute']>>[number];

function principalOf(policy: TokenPolicy, rows: readonly ActiveEnvironment[]): Principal | null {
  const [first, ...others] = rows;
  if (first === undefined) return null;
  const scopes = policyScopes(policy);
  const grants = rows.map(
    ({ workspace, environment }): Grant => ({
      scopes,
      reach: { kind: 'environment', workspace, environment },
    }),
  );
  return {
    token: { kind: 'personal-access-token', tokenId: first.tokenId },
    subject: `kilolock:account:${first.accountId}`,
    actor: first.email,
    scopes,
    workspace: others.length === 0 ? first.workspace : '',
    environment: others.length === 0 ? first.environment : '',
    statePatterns: null,
    grants,
  };
}

function findActiveEnvironments(db: Kysely<Database>) {
  return db
    .selectFrom('portal_personal_access_tokens')
    .innerJoin('portal_accounts as account', 'account.id', 'portal_personal_access_tokens.account_id')
    .innerJoin('tenant_memberships as membership', 'membership.account_id', 'account.id')
    .innerJoin('tenants', 'tenants.slug', 'membership.tenant_slug')
    .innerJoin('environments', 'environments.tenant_id', 'tenants.id')
    .select([
      'portal_personal_access_tokens.id as tokenId',
      'account.id as accountId',
      'account.email',
      'tenants.workspace_id as workspace',
      'environments.env_public_id as environment',
      isUseWorthNoting('portal_personal_access_tokens').as('isUseWorthNoting'),
    ])
    .where('portal_personal_access_tokens.revoked_at', 'is', null)
    .where('membership.revoked_at', 'is', null)
    .where('membership.role', 'in', ['owner', 'tenant_admin'])
    .where('tenants.lifecycle_status', '=', 'active')
    .where('environments.lifecycle_status', '=', 'active')
    .where((eb) =>
      eb.or([
        eb.and([
          eb('tenants.kind', '=', 'personal'),
          eb('tenants.personal_owner_account_id', '=', eb.ref('account.id')),
        ]),
        eb.exists(
          eb
            .selectFrom('portal_environment_pat_grants as granted')
            .select('granted.id')
            .whereRef('granted.environment_id', '=', 'environments.id')
            .whereRef('granted.account_id', '=', 'account.id')
            .where('granted.revoked_at', 'is', null),
        ),
      ]),
    );
}
