import { randomUUID } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { DatabaseSession } from '../database/connection.ts';
import { type CopyValue, copyIntoTable } from '../database/copy.ts';
import type { Database } from '../database/types.ts';
import type { StateOutput } from '../terraform/document.ts';

/**
 * Writes the rows of `outputs` for the versions of a state that have just been inserted, out of their raw states and
 * inside the database (data model 3.8): value (absent: null), value_type (absent: "dynamic"), sensitive (absent: false).
 *
 * @param except the serials of versions whose outputs are not where jsonb finds them, for {@link insertOutputRows}.
 */
export async function deriveOutputs(
  db: Kysely<Database>,
  stateId: string,
  except: readonly bigint[],
): Promise<void> {
  await sql`
    insert into public.outputs (state_version_id, tenant_id, name, value, value_type, sensitive)
    select version.id, version.tenant_id, output.key,
      coalesce(output.value -> 'value', 'null'),
      coalesce(output.value -> 'type', '"dynamic"'),
      coalesce((output.value ->> 'sensitive')::boolean, false)
    from public.state_versions version
    cross join lateral jsonb_each(
      case jsonb_typeof(version.raw_state -> 'outputs') when 'object' then version.raw_state -> 'outputs' else '{}' end
    ) output
    where version.state_id = ${stateId} and version.serial <> all(${except.map(String)}::bigint[])
  `.execute(db);
}

/** The outputs of one version. */
export interface VersionOutputs {
  readonly versionId: string;
  readonly outputs: Iterable<StateOutput>;
}

/** Writes rows of `outputs` as they come. */
export async function insertOutputRows(
  session: DatabaseSession,
  tenantId: string,
  versions: AsyncIterable<VersionOutputs> | Iterable<VersionOutputs>,
): Promise<void> {
  await copyIntoTable(
    session,
    'public.outputs',
    [
      ['id', 'uuid'],
      ['tenant_id', 'uuid'],
      ['state_version_id', 'uuid'],
      ['name', 'text'],
      ['value', 'jsonb'],
      ['value_type', 'jsonb'],
      ['sensitive', 'boolean'],
    ],
    outputRows(tenantId, versions),
  );
}

async function* outputRows(
  tenantId: string,
  versions: AsyncIterable<VersionOutputs> | Iterable<VersionOutputs>,
): AsyncGenerator<CopyValue[]> {
  for await (const { versionId, outputs } of versions) {
    for (const { name, value, type, sensitive } of outputs) {
      yield [randomUUID(), tenantId, versionId, name, value, type, sensitive];
    }
  }
}
