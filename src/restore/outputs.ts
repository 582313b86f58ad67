import { type Kysely, sql } from 'kysely';
import type { Database } from '../database/types.ts';

/**
 * Writes the rows of `outputs` for versions that have just been inserted, out of their raw states and inside the
 * database (data model 3.8): value (absent: null), value_type (absent: "dynamic"), sensitive (absent: false).
 */
export async function deriveOutputs(
  db: Kysely<Database>,
  versions: { readonly stateId: string; readonly serial?: bigint },
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
    where version.state_id = ${versions.stateId}
      and ${versions.serial === undefined ? sql`true` : sql`version.serial = ${String(versions.serial)}`}
  `.execute(db);
}
