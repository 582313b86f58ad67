import {
  type CompiledQuery,
  type ConnectionProvider,
  type DatabaseConnection,
  DefaultQueryExecutor,
  type Dialect,
  type Driver,
  Kysely,
  type KyselyPlugin,
  OperationNodeTransformer,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type ReferenceNode,
  type SelectModifierNode,
  SingleConnectionProvider,
  TableNode,
  Transaction,
} from 'kysely';
import type pg from 'pg';
import type { Database } from './types.ts';

/** Runs one statement. */
type RunStatement = (text: string, values: readonly unknown[]) => Promise<pg.QueryResult>;

/** A Kysely whose statements are transactions of their own, any number at a time. */
export function kyselyOfStatements(run: RunStatement): Kysely<Database> {
  const connection = connectionOf(run);
  return new Kysely<Database>(propsOf({ provideConnection: (consumer) => consumer(connection) }));
}

/** A Kysely whose statements run one after the other in a transaction that somebody else begins and ends. */
export function kyselyOfTransaction(run: RunStatement): Transaction<Database> {
  return new Transaction<Database>(propsOf(new SingleConnectionProvider(connectionOf(run))));
}

function propsOf(connections: ConnectionProvider) {
  const executor = new DefaultQueryExecutor(
    dialect.createQueryCompiler(),
    dialect.createAdapter(),
    connections,
    [inPublic],
  );
  return { config: { dialect }, dialect, driver: noDriver, executor };
}

function connectionOf(run: RunStatement): DatabaseConnection {
  return {
    async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
      const { command, rowCount, rows } = await run(sql, parameters);
      const isWrite = ['INSERT', 'UPDATE', 'DELETE', 'MERGE'].includes(command);
      return { rows, ...(isWrite && { numAffectedRows: BigInt(rowCount ?? 0) }) };
    },
    streamQuery() {
      throw new Error('Long results are read by COPY.');
    },
  };
}

/**
 * Puts `public` in front of the tables that are named without a schema. Kysely's own `withSchema` does so for references to
 * them too, and takes an alias `operation` for the table `state_archive.operation`. A common table expression made by
 * Kysely's `with` would be looked for in `public`: use raw SQL for one.
 */
class QualifyTables extends OperationNodeTransformer {
  protected override transformTable(node: TableNode): TableNode {
    const { schema, identifier } = node.table;
    return schema === undefined ? TableNode.createWithSchema('public', identifier.name) : node;
  }

  protected override transformReference(node: ReferenceNode): ReferenceNode {
    return node;
  }

  protected override transformSelectModifier(node: SelectModifierNode): SelectModifierNode {
    return node;
  }
}

const inPublic: KyselyPlugin = {
  transformQuery: ({ node, queryId }) => new QualifyTables().transformNode(node, queryId),
  transformResult: async ({ result }) => result,
};

/** Whoever migrates has locked others out already, for the transaction: Kysely's own lock would outlive it. */
class LocklessAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

/** Kysely would begin, end and hand out connections by itself: `inTransaction` is the one way to a transaction. */
const noDriver = new Proxy({} as Driver, {
  get() {
    throw new Error('Use inTransaction.');
  },
});

const dialect: Dialect = {
  createDriver: () => noDriver,
  createAdapter: () => new LocklessAdapter(),
  createQueryCompiler: () => new PostgresQueryCompiler(),
  createIntrospector: (db) => new PostgresIntrospector(db),
};
