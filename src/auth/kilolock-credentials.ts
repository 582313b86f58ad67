import { createHash } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import type { KilolockDatabase } from '../database/connection.ts';
import type { Grant, Principal, Scope, TokenReference } from './principal.ts';
import { listRoleGrants } from './role-grants.ts';

/** What tokens of Kilolock's own may do here beside reading, and beside what Kilolock's roles grant them. */
interface TokenPolicy {
  readonly export: boolean;
  readonly import: boolean;
}

/** What this service lets Kilolock's own credentials do, beyond what Kilolock's roles grant. */
export interface CredentialPolicies {
  /** Of an API token, in its own environment. */
  readonly token: TokenPolicy;
  /** Of a personal access token, in the environments of the workspaces that its account owns or administers. */
  readonly owner: TokenPolicy;
}

/**
 * Looks a secret up among Kilolock's API tokens, then among its personal access tokens (data model 7.4). Nothing is
 * remembered between requests, so that a token is refused from the moment it is revoked.
 *
 * @param hint the workspace its sender says it belongs to, which is the user name of HTTP Basic; null when none was given.
 * @returns null when it is none, is revoked, or belongs to something that is not active: which of these is not told.
 */
export async function verifyKilolockCredential(
  database: KilolockDatabase,
  policies: CredentialPolicies,
  secret: Buffer,
  hint: string | null,
): Promise<Principal | null> {
  const hash = createHash('sha256').update(secret).digest();
  return (
    (await findApiToken(database, policies.token, { hash, hint })) ??
    (await findPersonalAccessToken(database, policies.owner, { hash, hint }))
  );
}

/**
 * Who a token of Kilolock's stands for now.
 *
 * @returns null when it is revoked, or belongs to something that is no longer active.
 */
export function readKilolockCredential(
  database: KilolockDatabase,
  policies: CredentialPolicies,
  { kind, tokenId }: TokenReference,
): Promise<Principal | null> {
  return kind === 'api-token'
    ? findApiToken(database, policies.token, { id: tokenId })
    : findPersonalAccessToken(database, policies.owner, { id: tokenId });
}

/** A token that somebody shows, or the one with the id of its row. */
type TokenLookup =
  | {
      /** SHA-256 of the whole token. */
      readonly hash: Buffer;
      /** The workspace that its sender says it belongs to, which is the user name of HTTP Basic; null when none was given. */
      readonly hint: string | null;
    }
  | { readonly id: string };

/**
 * Finds who an API token stands for (data model 7.2 and 7.4). The token, its tenant and its environment must be active.
 * In its own environment it may read, and what the policy adds; anything else, there or elsewhere, is by its roles. The hint may
 * be the workspace's public id or its slug.
 */
async function findApiToken(
  database: KilolockDatabase,
  policy: TokenPolicy,
  wanted: TokenLookup,
): Promise<Principal | null> {
  const db = database.for('read');
  const token = await db
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
    .where(isToken('api_tokens', wanted))
    .where('api_tokens.revoked_at', 'is', null)
    .where('api_tokens.lifecycle_status', '=', 'active')
    .where('tenants.lifecycle_status', '=', 'active')
    .where('environments.lifecycle_status', '=', 'active')
    .executeTakeFirst();
  if (token === undefined) return null;
  const { id, workspace, environment, tenantSlug } = token;
  if ('hash' in wanted) {
    if (wanted.hint !== null && ![workspace, tenantSlug].includes(wanted.hint)) return null;
    if (token.isUseWorthNoting) await noteUse(database, 'api_tokens', id);
  }
  const own: Grant = {
    scopes: policyScopes(policy),
    reach: { kind: 'environment', workspace, environment },
  };
  const grants = [own, ...(await listRoleGrants(db, id))];
  return {
    token: { kind: 'api-token', tokenId: id },
    subject: `kilolock:api-token:${id}`,
    // As Kilolock itself names it in history (data model 6).
    actor: `${tenantSlug}/${token.environmentSlug}/${token.name}`,
    scopes: new Set(grants.flatMap(({ scopes }) => [...scopes])),
    workspace,
    environment,
    statePatterns: null,
    grants,
  };
}

/**
 * Finds who a personal access token stands for (data model 7.3 and 7.4). The account must own or administer an active
 * workspace, and in it have an active environment that is its own (a personal workspace) or was granted to it. The hint is the
 * public id of the workspace it is to be used in.
 *
 * Such a token is for no one environment: the principal holds a grant for each, and looks labels up in the only one
 * there is or in none. Where the policy adds nothing to reading, no such token is accepted.
 */
async function findPersonalAccessToken(
  database: KilolockDatabase,
  policy: TokenPolicy,
  wanted: TokenLookup,
): Promise<Principal | null> {
  if (!policy.export && !policy.import) return null;
  const found = await database
    .for('read')
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
    .where(isToken('portal_personal_access_tokens', wanted))
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
    )
    .execute();
  const hint = 'hash' in wanted ? wanted.hint : null;
  const rows = found.filter(({ workspace }) => hint === null || workspace === hint);
  const [first, ...others] = rows;
  if (first === undefined) return null;
  if ('hash' in wanted && first.isUseWorthNoting) {
    await noteUse(database, 'portal_personal_access_tokens', first.tokenId);
  }
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

/** The scopes that a policy comes to. */
function policyScopes(policy: TokenPolicy): ReadonlySet<Scope> {
  const scopes = new Set<Scope>(['state.read']);
  if (policy.export) scopes.add('state.export');
  if (policy.import) scopes.add('state.import');
  return scopes;
}

type TokenTable = 'api_tokens' | 'portal_personal_access_tokens';

/** Whether a row of a table of tokens is that of the token. */
function isToken(table: TokenTable, token: TokenLookup): RawBuilder<boolean> {
  return 'id' in token
    ? sql<boolean>`${sql.ref(`${table}.id`)} = ${token.id}`
    : sql<boolean>`${sql.ref(`${table}.token_hash`)} = ${token.hash}`;
}

/** Whether the last use of a token was noted so long ago that this one should be: once a minute is enough. */
function isUseWorthNoting(table: TokenTable): RawBuilder<boolean> {
  const lastUsedAt = sql.ref(`${table}.last_used_at`);
  return sql<boolean>`(${lastUsedAt} is null or ${lastUsedAt} < now() - interval '1 minute')`;
}

/**
 * Notes that a token is used now. It is for people to see which tokens are still in use: nobody waits for a lock on the
 * row, and no request fails because it cannot be written.
 */
async function noteUse(database: KilolockDatabase, table: TokenTable, id: string): Promise<void> {
  const tokens = sql.table(`public.${table}`);
  await sql`
    update ${tokens} set last_used_at = now() where id = (
      select id from ${tokens} where id = ${id} and ${isUseWorthNoting(table)} for no key update skip locked
    )`
    .execute(database.for('housekeeping'))
    .catch(() => {});
}
