import { match, strictEqual } from 'node:assert/strict';
import { generatedDocument } from '../histories/generated.ts';
import type { Part } from '../part.ts';

const NAME = 'rights';

export const databaseRoles: Part = {
  name: 'database-roles',
  title: "A database role of the service's own",
  needs: [],
  after: [],
  async run(stage) {
    const { report, postgres } = stage;
    const database = await postgres.create('rights');
    const kld = await stage.startKld(database);
    strictEqual((await kld.post(NAME, generatedDocument(1, '', 3))).status, 200);
    const role = await postgres.createRole('service');
    await database.script(`
      grant create on database ${database.name} to ${role.name};
      grant select, insert, update, delete on all tables in schema public to ${role.name};
    `);
    const service = await stage.startService('rights', database.connectionStringFor(role));
    const archives = service.as(await service.token());

    await report.check('with the rights it needs it exports and restores', async () => {
      const { bytes } = await archives.export(NAME);
      const { messages } = await archives.import(bytes, {
        name: `${NAME}/restored`,
        allowSharedLineage: true,
      });
      strictEqual(messages.join(), '');
    });
    await database.script(`revoke insert on events from ${role.name}`);
    await report.check(
      'an export whose event cannot be written is told to have failed, and reads FAILED',
      async () => {
        const refusal = await archives.export(NAME).then(
          () => 'It succeeded.',
          (error: Error) => error.message,
        );
        match(refusal, /\(FAILED\): (INTERNAL|OPERATION_INTERRUPTED)/);
        return refusal;
      },
    );
    await report.check('a service that lacks a right says which when it starts', async () => {
      const again = await stage.startService('rights-again', database.connectionStringFor(role)).then(
        (started) => started.log,
        (error: Error) => error.message,
      );
      match(again, /events/);
    });
  },
};
