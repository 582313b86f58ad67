import type { KilolockDatabase } from '../../../src/database/connection.ts';
import { findNamespace, type NamespaceSelector } from '../../../src/history/namespace.ts';
import { destinationOf } from '../../../src/restore/destination.ts';
import { appendSnapshot } from '../../../src/restore/snapshot.ts';

/** Creates an environment, and its workspace when there is none of that id. */
export async function createEnvironment(
  { pool }: KilolockDatabase,
  workspace: string,
  environment: string,
): Promise<void> {
  await pool.query(
    `insert into tenants (workspace_id, slug, name) values ($1, $1, $1) on conflict (workspace_id) do nothing`,
    [workspace],
  );
  await pool.query(
    `insert into environments (tenant_id, env_public_id, slug)
     select id, $2, $2 from tenants where workspace_id = $1`,
    [workspace, environment],
  );
}

/** The `scope` argument that names an environment. */
export function scopeOf(
  { workspace, environment }: { readonly workspace: string; readonly environment: string },
  reason?: string | null,
) {
  return { workspaceId: workspace, environmentId: environment, ...(reason !== undefined && { reason }) };
}

/** What one document of a made-up history holds. */
export interface Contents {
  /** The value of each resource's attribute, by the resource's name. */
  readonly resources?: Readonly<Record<string, string>>;
  readonly outputs?: Readonly<Record<string, string>>;
}

/** A state document as Terraform writes one. */
export function documentOf(lineage: string, { resources = {}, outputs = {} }: Contents): string {
  return JSON.stringify({
    version: 4,
    terraform_version: '1.11.4',
    serial: 1,
    lineage,
    outputs: Object.fromEntries(
      Object.entries(outputs).map(([name, value]) => [name, { value, type: 'string' }]),
    ),
    resources: Object.entries(resources).map(([name, value]) => ({
      mode: 'managed',
      type: 'terraform_data',
      name,
      provider: 'provider["terraform.io/builtin/terraform"]',
      instances: [{ schema_version: 0, attributes: { id: name, input: value }, sensitive_attributes: [] }],
    })),
  });
}

/** Posts a document for each of `history`, in order, as Terraform would, to a new lineage. */
export async function postHistory(
  database: KilolockDatabase,
  selector: NamespaceSelector,
  label: string,
  history: readonly Contents[],
): Promise<{ stateId: string; lineage: string }> {
  const namespace = await findNamespace(database.for('record'), selector);
  if (namespace === null) throw new Error('There is no such environment.');
  const lineage = crypto.randomUUID();
  let stateId = '';
  for (const contents of history) {
    const document = Buffer.from(documentOf(lineage, contents));
    const snapshot = { document, source: 'apply', actor: 'ci@runner' } as const;
    ({ stateId } = await appendSnapshot(database, destinationOf(namespace, label), snapshot));
  }
  return { stateId, lineage };
}

/** Tags the version of a serial. */
export async function tagVersion(
  { pool }: KilolockDatabase,
  stateId: string,
  serial: bigint,
  tag: string,
  description: string | null = null,
): Promise<void> {
  await pool.query(
    `insert into state_version_tags (tenant_id, state_id, state_version_id, tag, description, actor)
     select tenant_id, state_id, id, $3, $4, 'bob@cli' from state_versions where state_id = $1 and serial = $2`,
    [stateId, String(serial), tag, description],
  );
}
