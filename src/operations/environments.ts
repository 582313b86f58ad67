import type { KilolockDatabase } from '../database/connection.ts';
import type { EnvironmentDatabases } from '../database/environment-databases.ts';
import {
  ensureTenant,
  findNamespace,
  type NamespaceSelector,
  readOwnDatabaseDsn,
  type StateNamespace,
} from '../history/namespace.ts';
import { findStateAtOnce, type StateAtOnce } from '../history/state-at-once.ts';

/** An environment, and the database that holds its states and the records of what was done with them. */
export interface OpenEnvironment {
  readonly namespace: StateNamespace;
  readonly database: KilolockDatabase;
}

/** The environments there are: known to the control database, each with its states there or in a database of its own. */
export class Environments {
  readonly #control: KilolockDatabase;
  readonly #own: EnvironmentDatabases;
  /** The tenants whose row is in each database of an environment. */
  readonly #tenants = new WeakMap<KilolockDatabase, Set<string>>();

  constructor(control: KilolockDatabase, own: EnvironmentDatabases) {
    this.#control = control;
    this.#own = own;
  }

  /** Every database that is open now, the control database first. */
  get openDatabases(): readonly KilolockDatabase[] {
    return [this.#control, ...this.#own.opened];
  }

  /**
   * Opens an environment; null when there is none that is active and ready.
   *
   * @throws the errors of {@link EnvironmentDatabases.open} when its own database cannot be used.
   */
  async open(selector: NamespaceSelector): Promise<OpenEnvironment | null> {
    const db = this.#control.for('read');
    const namespace = await findNamespace(db, selector);
    if (namespace === null) return null;
    if (!namespace.hasOwnDatabase) return { namespace, database: this.#control };
    const dsn = await readOwnDatabaseDsn(db, selector);
    if (dsn === null) return null;
    const database = await this.#own.open(dsn);
    await this.#ensureTenant(database, namespace);
    return { namespace, database };
  }

  /**
   * Opens an environment with a state in it, and reads the state's history if wanted, in one statement. Null when they are not
   * as simple to find as most are, see {@link findStateAtOnce}: {@link open} tells what is there.
   */
  async openWithState(
    selector: NamespaceSelector,
    label: string,
    wanted: { readonly withHistory: boolean },
  ): Promise<(OpenEnvironment & StateAtOnce) | null> {
    const found = await findStateAtOnce(this.#control.for('read'), selector, label, wanted);
    return found && { ...found, database: this.#control };
  }

  /**
   * The database that records the operations of an environment, or did when it was active and had none of its own.
   *
   * @throws as {@link open} does.
   */
  async databaseOf(selector: NamespaceSelector): Promise<KilolockDatabase> {
    return (await this.open(selector))?.database ?? this.#control;
  }

  /** Whatever is done there is put on record there, and every record names the tenant. */
  async #ensureTenant(database: KilolockDatabase, namespace: StateNamespace): Promise<void> {
    const tenants = this.#tenants.get(database) ?? new Set();
    if (tenants.has(namespace.tenantId)) return;
    await ensureTenant(database.for('record'), namespace);
    this.#tenants.set(database, tenants.add(namespace.tenantId));
  }
}
