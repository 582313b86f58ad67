import type { Relation } from '../../support/catalog.ts';

/** What there is to say of tables and columns beyond the catalogue. */
const REMARKS: Readonly<Record<string, string>> = {
  tenants: 'Data model 1.12: "workspace" is the public word for a tenant.',
  'tenants.max_environments': '0 means unlimited, as in the two columns below.',
  environments: 'Data model 1.12. `database_dsn` and `source_database_dsn` are secrets.',
  'environments.database_dsn': "NULL or '' means the shared database.",
  states: 'Data model 1.1. `name` is the stored name; (tenant_id, name) is unique.',
  state_versions: 'Data model 1.2. (state_id, serial) is unique.',
  'state_versions.raw_state': 'Select `raw_state::text` or copy it: it may be hundreds of megabytes.',
  state_version_tags: 'Data model 1.3 and 4. (tenant_id, state_id, tag) is unique.',
  resources: 'Data model 1.4: one row per span of serials in which a resource stayed the same.',
  outputs: 'Data model 1.5: a full set of rows for each version.',
  events: 'Data model 1.10 and 6: the audit trail.',
  state_locks: 'Data model 1.7 and 5.',
  apply_runs: 'Data model 1.9.',
  refresh_runs: 'Data model 1.9.',
  resource_reservations: 'Data model 1.8. `tenant_id` is the zero tenant on every row Kilolock writes.',
  api_tokens: 'Data model 7.2: one token is one environment. `token_hash` is SHA-256 of the whole token.',
  rbac_principal_roles: 'Data model 7.5.',
  portal_accounts: 'The person behind a personal access token (data model 7.3).',
  portal_personal_access_tokens: 'Data model 7.3.',
  'state_archive.operation': 'One export or import, from request to outcome.',
  'state_archive.operation.state_name': 'The stored name, the one in `states.name`.',
  'state_archive.operation.attempt':
    'How often work on it has begun; who holds an earlier number holds nothing.',
  'state_archive.operation.worker': 'The process that works on it, or did last.',
  'state_archive.operation.heartbeat_at':
    'When its worker, or whoever queued it, was last heard of; null: it was never queued, or an earlier release began it.',
  'state_archive.operation.request':
    'What is to be done and with whose rights; null where nobody else could do it.',
  'state_archive.operation.lease_until':
    'Until when the process of an earlier release that runs it may be believed alive; null for all others.',
  'state_archive.operation.replaced_operation_id':
    'The export that was taken of the history this import replaced.',
  'state_archive.operation.support_reason': 'Why support asked for it in an environment that is not its own.',
  'state_archive.snapshot_import': "The version that a caller's idempotency key stands for.",
  'state_archive.snapshot_import.request_fingerprint':
    'The digest of the request the key was first used with.',
  'state_archive.snapshot_import.state_id':
    'Null, like the serial, within the transaction that writes the version.',
  'state_archive.version_mapping': 'Which version of the archive became which row.',
  'state_archive.version_digest':
    'SHA-256 and length of the UTF-8 of `raw_state::text`, facts that never change.',
};

const TYPES: Readonly<Record<string, string>> = {
  bigint: 'BigIntColumn',
  boolean: 'boolean',
  bytea: 'BytesColumn',
  integer: 'number',
  jsonb: 'JsonTextColumn',
  text: 'string',
  'text[]': 'string[]',
  'timestamp with time zone': 'TimestampColumn',
  uuid: 'string',
};

/**
 * The source of `src/database/types.ts`, before it is formatted.
 *
 * @param tables by name: as it is in `public`, with the schema before it elsewhere.
 */
export function generateTypes(tables: Readonly<Record<string, Relation>>): string {
  return `/**
 * @file What the tables hold that this project reads or writes: Kilolock's own (schema \`public\`, data model 1) and the
 * project's (schema \`state_archive\`). Generated from the catalogues of both; see test/database/types.test.ts.
 */

import type { ${['BigIntColumn', 'BytesColumn', 'JsonTextColumn', 'Nullable', 'TimestampColumn', 'WithDefault'].join(', ')} } from './column-types.ts';

/** Every table, by the name statements use. */
export interface Database {
${Object.entries(tables)
  .sort(([one], [other]) => (one < other ? -1 : 1))
  .map(([name, relation]) => table(name, relation))
  .join('')}}
`;
}

/** Whether a table is one of the project's own. */
function isOwn(table: string): boolean {
  return table.startsWith('state_archive.');
}

function table(name: string, { columns, constraints }: Relation): string {
  const checks = (constraints ?? []).map(({ definition }) => definition);
  const fields = columns.map((column) => {
    const type = wordsOf(column.name, checks) ?? TYPES[column.type];
    if (type === undefined) throw new Error(`${name}.${column.name}: no TypeScript for ${column.type}`);
    const wrapped = column.nullable
      ? `Nullable<${type}>`
      : column.default !== null
        ? `WithDefault<${type}>`
        : type;
    return `${remark(`${name}.${column.name}`)}${column.name}: ${wrapped};\n`;
  });
  return `${remark(name)}${isOwn(name) ? `'${name}'` : name}: {\n${fields.join('')}};\n`;
}

/** The words a CHECK confines a column to, as a type. */
function wordsOf(column: string, checks: readonly string[]): string | undefined {
  const start = `CHECK ((${column} = ANY (ARRAY[`;
  const check = checks.find((definition) => definition.startsWith(start));
  return check?.slice(start.length).match(/'\w+'/g)?.join(' | ');
}

function remark(name: string): string {
  const text = REMARKS[name];
  return text === undefined ? '' : `/** ${text} */\n`;
}
