import { type Compilable, type CompiledQuery, type Kysely, type RawBuilder, sql } from 'kysely';
import type { Database } from './types.ts';

/** Stands for a value in a query that is compiled before there are values. */
class ValueNamed<Values> {
  readonly name: keyof Values;

  constructor(name: keyof Values) {
    this.name = name;
  }
}

/** Gives what stands for a value until the query is run. */
export type Placeholder<Values> = <Name extends keyof Values>(name: Name) => RawBuilder<Values[Name]>;

/**
 * A query whose text depends on no value. It is built and compiled when it is first run, which takes a quarter of the time it
 * takes to run.
 *
 * @param build makes the query; `value` stands for the value of that name.
 * @returns the function that runs it.
 */
export function compiledOnce<Values, Row>(
  build: (db: Kysely<Database>, value: Placeholder<Values>) => Compilable<Row>,
): (db: Kysely<Database>, values: Values) => Promise<Row[]> {
  let compiled: CompiledQuery<Row> | undefined;
  return async (db, values) => {
    compiled ??= build(db, (name) => sql`${new ValueNamed<Values>(name)}`).compile();
    const parameters = compiled.parameters.map((parameter) =>
      parameter instanceof ValueNamed ? values[parameter.name as keyof Values] : parameter,
    );
    return (await db.executeQuery<Row>({ ...compiled, parameters })).rows;
  };
}
