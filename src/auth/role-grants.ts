import { type Kysely, sql } from 'kysely';
import type { Database } from '../database/types.ts';
import { type Grant, SCOPES } from './principal.ts';

/**
 * What an API token's roles grant it, of the permissions this service knows (data model 7.5). Kilolock names where a role
 * holds by slugs; they are turned into public ids here, by the rows of this moment. A grant that names nothing that
 * exists, or is not of the form Kilolock writes, grants nothing.
 */
export async function listRoleGrants(db: Kysely<Database>, tokenId: string): Promise<Grant[]> {
  const rows = await db
    .selectFrom('rbac_principal_roles as role')
    .innerJoin('rbac_role_permissions', 'rbac_role_permissions.role_id', 'role.role_id')
    .innerJoin('rbac_permissions as permission', 'permission.id', 'rbac_role_permissions.permission_id')
    .leftJoin('tenants', (join) =>
      join.on('tenants.slug', '=', sql<string>`split_part(role.scope_ref, '/', 1)`),
    )
    .leftJoin('environments', (join) =>
      join
        .onRef('environments.tenant_id', '=', 'tenants.id')
        .on('environments.slug', '=', sql<string>`split_part(role.scope_ref, '/', 2)`),
    )
    .select([
      'permission.key as scope',
      'role.scope_kind as kind',
      'role.scope_ref as reference',
      'tenants.slug as tenantSlug',
      'tenants.workspace_id as workspace',
      'environments.slug as environmentSlug',
      'environments.env_public_id as environment',
    ])
    .distinct()
    .where('role.subject_kind', '=', 'api_token')
    .where('role.subject_id', '=', tokenId)
    .where('role.revoked_at', 'is', null)
    .where('permission.key', 'in', SCOPES)
    .execute();
  return rows.flatMap((row): Grant[] => {
    const { kind, reference, tenantSlug, workspace, environment } = row;
    const scopes = new Set([row.scope]);
    if (kind === 'global') return reference === '' ? [{ scopes, reach: { kind } }] : [];
    if (workspace === null) return [];
    if (kind === 'tenant') {
      return reference === tenantSlug ? [{ scopes, reach: { kind: 'workspace', workspace } }] : [];
    }
    // With more than the two slugs in it, it is not known what was meant.
    if (environment === null || reference !== `${tenantSlug}/${row.environmentSlug}`) return [];
    return [{ scopes, reach: { kind: 'environment', workspace, environment } }];
  });
}
