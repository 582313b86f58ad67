import { match, rejects } from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Part } from '../part.ts';
import type { Database } from '../postgres.ts';
import type { Stage } from '../stage.ts';

/** Migrations after which something that this service reads is still missing. */
const TOO_OLD = [1, 22, 29, 32];
const OLDEST_SUPPORTED = 33;

export const olderDatabases: Part = {
  name: 'older-databases',
  title: 'Databases of older Kilolocks, and empty ones',
  needs: [],
  after: [],
  async run(stage) {
    const { report, migrations } = stage;
    await report.check('an empty database: the service refuses to start, in one line', async () =>
      refusesToStart(stage, await stage.postgres.create('empty')),
    );
    if (migrations === undefined) {
      report.skip('Databases of older Kilolocks', 'they need --migrations');
      return;
    }
    for (const last of TOO_OLD) {
      await report.check(
        `stopped at migration ${last}: the service refuses to start, and names what is missing`,
        async () => {
          const database = await stage.postgres.create(`migration_${last}`);
          await migrate(database, migrations, last);
          const line = await refusesToStart(stage, database);
          match(line, /column|table|migrat/);
          return line;
        },
      );
    }
    await report.check(`migrated up to ${OLDEST_SUPPORTED}: it starts`, async () => {
      const database = await stage.postgres.create(`migration_${OLDEST_SUPPORTED}`);
      await migrate(database, migrations, OLDEST_SUPPORTED);
      const service = await stage.startService('migrated', database.connectionString);
      await service.stop();
    });
  },
};

/** @returns the line that it prints. */
async function refusesToStart(stage: Stage, database: Database): Promise<string> {
  let line = '';
  await rejects(stage.startService('refused', database.connectionString), (error: Error) => {
    // The message begins with what was run; warnings of the log are no part of the line.
    const printed = error.message.split('\n').filter((each) => each !== '' && !each.startsWith('{'));
    line = printed.at(-1) ?? '';
    return !/\n\s+at /.test(error.message);
  });
  return line;
}

/** Applies Kilolock's own files, as its runner does, up to a version. */
async function migrate(database: Database, directory: string, last: number): Promise<void> {
  await database.script(
    'create table schema_migrations (version int primary key, applied_at timestamptz not null default now())',
  );
  const files = (await readdir(directory)).filter((file) => /^\d{4}_.*\.sql$/.test(file)).sort();
  for (const file of files) {
    const version = Number(file.slice(0, 4));
    if (version > last) return;
    const statements = await readFile(join(directory, file), 'utf8');
    await database.script(
      `begin; ${statements}\n; insert into schema_migrations (version) values (${version}) on conflict do nothing; commit`,
    );
  }
}
