import type { Kysely } from 'kysely';
import { LRUCache } from 'lru-cache';
import { compiledOnce, type Placeholder } from '../database/compiled-once.ts';
import type { Database } from '../database/types.ts';
import { type HistoryRow, historyColumns, knownRow, markColumn, markedColumns } from './history.ts';
import {
  hasOwnDatabase,
  type NamespaceSelector,
  namePrefixOf,
  namespaceOf,
  type StateNamespace,
  selectNamespace,
} from './namespace.ts';
import { type StateRecord, stateColumns, stateRecordOf } from './states.ts';

/** A state with the environment it is in. */
export interface StateAtOnce {
  readonly namespace: StateNamespace;
  readonly state: StateRecord;
  /** Its history, when that was asked for. */
  readonly history: HistoryRow | null;
}

/**
 * Finds a state, the environment it is in, and its history if wanted, in one statement: what most requests ask for, of which the
 * parts would be read one after the other.
 *
 * @param db the control database.
 * @returns null unless both are active and the state is in the control database: the parts tell what else there is.
 */
export async function findStateAtOnce(
  db: Kysely<Database>,
  selector: NamespaceSelector,
  label: string,
  { withHistory }: { readonly withHistory: boolean },
): Promise<StateAtOnce | null> {
  const statements = selector === null ? SELF_HOSTED : HOSTED;
  const values = { ...selector, name: namePrefixOf(selector) + label };
  if (withHistory) {
    const last = knownRow(lastIds.get(values.name) ?? '');
    if (typeof last?.mark === 'string') {
      const [row] = await statements.stateWithMark(db, values);
      if (row?.mark === last.mark) {
        return foundAtOnce(row, selector, { ...row, versions: last.versions, tags: last.tags });
      }
    }
    const [row] = await statements.stateWithHistory(db, values);
    if (row === undefined) return null;
    lastIds.set(values.name, row.id);
    return foundAtOnce(row, selector, row);
  }
  const [row] = await statements.state(db, values);
  return row === undefined ? null : foundAtOnce(row, selector, null);
}

function foundAtOnce(row: StateRow, selector: NamespaceSelector, history: HistoryRow | null): StateAtOnce {
  const namespace = namespaceOf(row, selector);
  return { namespace, state: stateRecordOf(row, namespace), history };
}

/** The ids of states that were found, by stored name: a guess at whose history will be read. */
const lastIds = new LRUCache<string, string>({ max: 1000 });

interface Values {
  readonly name: string;
  readonly workspace?: string;
  readonly environment?: string;
}

type StateRow = Awaited<ReturnType<typeof SELF_HOSTED.state>>[number];

const SELF_HOSTED = statements({ isHosted: false });
const HOSTED = statements({ isHosted: true });

function statements({ isHosted }: { readonly isHosted: boolean }) {
  const select = (db: Kysely<Database>, value: Placeholder<Values>) =>
    selectNamespace(
      db,
      isHosted ? { workspace: value('workspace'), environment: value('environment') } : null,
    )
      .where(({ not }) => not(hasOwnDatabase))
      .innerJoin('states', 'states.tenant_id', 'tenants.id')
      .where('states.name', '=', value('name'))
      .where('states.lifecycle_status', '=', 'active')
      .select(stateColumns());
  return {
    state: compiledOnce(select),
    stateWithMark: compiledOnce((db, value: Placeholder<Values>) =>
      select(db, value).select(markedColumns()),
    ),
    stateWithHistory: compiledOnce((db, value: Placeholder<Values>) =>
      select(db, value).select(historyColumns()).select(markColumn().as('mark')),
    ),
  };
}
