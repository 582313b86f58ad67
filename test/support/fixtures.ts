import { readdirSync, readFileSync } from 'node:fs';
import { inTransaction, type KilolockDatabase } from '../../src/database/connection.ts';
import { SELF_HOSTED_TENANT_ID } from '../../src/history/namespace.ts';

/** A version of a {@link CaseHistory}. Serials are decimal strings, times PostgreSQL's or RFC 3339 text. */
export interface CaseVersion {
  readonly serial: string;
  readonly source: string;
  readonly created_at: string;
  readonly created_by: string | null;
  readonly terraform_version: string | null;
  /** The document's text. */
  readonly raw_state: string;
}

/** A tag of a {@link CaseHistory}. */
export interface CaseTag {
  readonly tag: string;
  readonly serial: string;
  readonly description: string | null;
  readonly actor: string;
  readonly created_at?: string;
  readonly updated_at?: string;
}

/** A history as the files of `test/fixtures/cases` write it. */
export interface CaseHistory {
  readonly state: { readonly name: string; readonly lineage: string | null };
  readonly current_serial: string | null;
  readonly versions: readonly CaseVersion[];
  readonly tags: readonly CaseTag[];
}

/** One file of `test/fixtures/cases`: a history, its reason, and the right outcome. */
export interface Case extends CaseHistory {
  readonly why: string;
  /** `database`: insert the rows, export, import, compare. `archive`: build an archive of them and import it. */
  readonly via: 'database' | 'archive';
  readonly expect: {
    readonly export?: 'ok';
    readonly import_: 'ok' | 'refused';
    readonly raw_identical?: boolean;
    readonly current_serial?: string;
    readonly serial?: string;
    readonly code?: string;
    readonly names?: readonly string[];
    readonly warning?: string;
    readonly addresses?: readonly string[];
    readonly open_rows?: ReadonlyArray<readonly [address: string, id: string]>;
    readonly spans?: ReadonlyArray<
      readonly [address: string, createSerial: number, deleteSerial: number | null]
    >;
  };
}

const fixtures = new URL('../fixtures/', import.meta.url);

/** The states that Terraform posted to an HTTP backend, as it posted them, in order. */
export function loadTerraformHistory(): Array<{ serial: bigint; document: string }> {
  const directory = new URL('terraform-history/', fixtures);
  return readdirSync(directory)
    .filter((name) => name.endsWith('.tfstate'))
    .sort()
    .map((name) => ({
      serial: BigInt(name.slice(0, -'.tfstate'.length)),
      document: readFileSync(new URL(name, directory), 'utf8'),
    }));
}

/** The case with this number, as in `loadCase('06')`. */
export function loadCase(number: string): Case {
  const directory = new URL('cases/', fixtures);
  const name = readdirSync(directory).find((file) => file.startsWith(`${number}-`));
  if (name === undefined) throw new Error(`No case ${number} in test/fixtures/cases.`);
  return JSON.parse(readFileSync(new URL(name, directory), 'utf8')) as Case;
}

/** The numbers of all cases, `'01'` first. */
export function caseNumbers(): string[] {
  return readdirSync(new URL('cases/', fixtures))
    .map((name) => name.slice(0, 2))
    .sort();
}

/**
 * Inserts a history row by row, with plain SQL. A tag without times gets its own: distinct, and not whole milliseconds.
 *
 * @returns the ids the rows got, those of the versions by serial.
 */
export async function insertHistory(
  database: KilolockDatabase,
  history: CaseHistory,
  options: { tenantId?: string; name?: string } = {},
): Promise<{ stateId: string; versionIds: Map<string, string> }> {
  const tenantId = options.tenantId ?? SELF_HOSTED_TENANT_ID;
  return inTransaction(database, 'restore', async ({ client }) => {
    await client.query('set local search_path to public');
    const insert = async (statement: string, values: readonly unknown[]): Promise<string> => {
      const { rows } = await client.query<{ id: string }>(`${statement} returning id`, [...values]);
      if (rows[0] === undefined) throw new Error('Nothing was inserted.');
      return rows[0].id;
    };

    const stateId = await insert(
      `insert into states (tenant_id, name, lineage, created_at, updated_at)
       values ($1, $2, $3, '2026-03-01T09:00:00.000003Z', '2026-03-09T18:00:00.000004Z')`,
      [tenantId, options.name ?? history.state.name, history.state.lineage],
    );
    const versionIds = new Map<string, string>();
    for (const version of history.versions) {
      const id = await insert(
        `insert into state_versions
           (tenant_id, state_id, serial, source, created_at, created_by, terraform_version, raw_state)
         values ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [
          tenantId,
          stateId,
          version.serial,
          version.source,
          version.created_at,
          version.created_by,
          version.terraform_version,
          version.raw_state,
        ],
      );
      versionIds.set(version.serial, id);
    }
    const versionId = (serial: string): string => {
      const id = versionIds.get(serial);
      if (id === undefined) throw new Error(`The history has no version ${serial}.`);
      return id;
    };
    for (const [index, tag] of history.tags.entries()) {
      const microseconds = String(index * 2 + 1).padStart(6, '0');
      await insert(
        `insert into state_version_tags
           (tenant_id, state_id, state_version_id, tag, description, actor, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [
          tenantId,
          stateId,
          versionId(tag.serial),
          tag.tag,
          tag.description,
          tag.actor,
          tag.created_at ?? `2026-03-07T12:00:00.${microseconds}Z`,
          tag.updated_at ?? `2026-03-08T12:30:00.${microseconds}Z`,
        ],
      );
    }
    if (history.current_serial !== null) {
      await client.query('update states set current_version_id = $1 where id = $2', [
        versionId(history.current_serial),
        stateId,
      ]);
    }
    return { stateId, versionIds };
  });
}
