import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { ENTITIES, LIST, OPERATION_BY_ID } from '../../documents.ts';
import type { Report } from '../../report.ts';
import { type Environment, LABEL, type Setting, VERSIONS } from './setting.ts';

/** Every token sees its own environment, and nothing of another's by whatever way it asks. */
export async function checkTenancy(report: Report, setting: Setting): Promise<void> {
  const { acme, isolated, other } = setting;
  for (const environment of [acme, isolated, other]) await checkOwn(report, setting, environment);
  for (const stranger of [other, isolated]) await checkStranger(report, setting, stranger);
  await checkDevelopmentTokens(report, setting);
}

async function checkOwn(report: Report, { service }: Setting, environment: Environment): Promise<void> {
  const { name, scope, archives, token } = environment;
  await report.check(`${name}: the API token sees the environment's state`, async () => {
    const preview = await archives.preview(LABEL);
    strictEqual(preview?.manifest.versionCount, VERSIONS);
    deepStrictEqual({ workspaceId: preview?.workspaceId, environmentId: preview?.environmentId }, scope);
  });
  await report.check(`${name}: it lists the environment's states alone`, async () => {
    const { data } = await archives.ask(LIST);
    deepStrictEqual(data, { stateArchives: { nodes: [{ name: LABEL, ...scope }] } });
  });
  await report.check(`${name}: the token is taken as the password of Basic, too`, async () => {
    const basic = Buffer.from(`:${token}`).toString('base64');
    const { data } = await service.withAuthorization(`Basic ${basic}`).ask(LIST);
    deepStrictEqual(data, { stateArchives: { nodes: [{ name: LABEL, ...scope }] } });
  });
  await report.check(`${name}: it exports the state, and is on record as who it is`, async () => {
    const { operation } = await archives.export(LABEL);
    ok(operation.actor.endsWith(`/${environment.environment}/ci`), operation.actor);
    return operation.actor;
  });
}

/** What a token of another environment is told of acme's state. */
async function checkStranger(
  report: Report,
  setting: Setting,
  { name, archives }: Environment,
): Promise<void> {
  const { acme, database } = setting;
  const { scope } = acme;
  const exported = await acme.archives.export(LABEL);
  const id = (await acme.archives.preview(LABEL))?.id;

  await report.check(`${name} sees nothing in acme/default's scope`, async () =>
    strictEqual(await archives.preview(LABEL, scope), null),
  );
  await report.check(`${name} sees nothing by the full stored name`, async () =>
    strictEqual(await archives.preview(acme.stored(LABEL)), null),
  );
  await report.check(`${name} gets nothing by references`, async () => {
    const { data } = await archives.ask(ENTITIES, {
      representations: [
        { __typename: 'StateArchive', id },
        { __typename: 'State', id },
        { __typename: 'StateArchive', ...scope, name: LABEL },
      ],
    });
    deepStrictEqual(data, { _entities: [null, { id, archive: null }, null] });
  });
  await report.check(`${name} sees nothing of the operation`, async () => {
    const { data } = await archives.ask(OPERATION_BY_ID, { id: exported.operation.id, scope });
    strictEqual((data as { stateArchiveOperation: unknown } | null)?.stateArchiveOperation ?? null, null);
  });
  await report.check(`${name} cannot export it`, async () => {
    const refusal = await archives.export(LABEL, scope).then(
      () => 'exported',
      (error: Error) => error.message,
    );
    ok(/STATE_NOT_FOUND|FORBIDDEN/.test(refusal), refusal);
  });
  await report.check(`${name} cannot import into the environment`, async () => {
    const { operation, codes } = await archives.import(exported.bytes, {
      scope,
      name: 'evil',
      allowSharedLineage: true,
    });
    strictEqual(operation, null);
    deepStrictEqual(codes, ['FORBIDDEN']);
    strictEqual(await database.value(`select count(*) from states where name like '%evil%'`), '0');
  });
}

async function checkDevelopmentTokens(report: Report, { service, isolated }: Setting): Promise<void> {
  await report.check("a JWT of acme/isolated sees what the environment's API token sees", async () => {
    const { workspaceId: workspace, environmentId: environment } = isolated.scope;
    const archives = service.as(await service.token({ workspace, environment }));
    deepStrictEqual(await archives.preview(LABEL), await isolated.archives.preview(LABEL));
  });
  await report.check('a self-hosted JWT sees nothing of the workspaces', async () => {
    const { data } = await service.as(await service.token()).ask(LIST);
    deepStrictEqual(data, { stateArchives: { nodes: [] } });
  });
}
