import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { rowsOf, sameRows } from '../../rows.ts';
import type { Stage } from '../../stage.ts';
import { type Environment, LABEL, type Setting } from './setting.ts';

/** Histories go from one environment into every other one, and go on there. */
export async function checkTransfers(stage: Stage, setting: Setting): Promise<void> {
  const { acme, isolated, other } = setting;
  for (const source of [acme, isolated]) {
    for (const destination of [acme, isolated, other]) {
      if (source !== destination) await checkTransfer(stage, setting, [source, destination]);
    }
  }
  await checkPrescribedPolicy(stage, setting);
}

/** The label under which a history of another environment is restored. */
export function labelFrom({ name }: Environment): string {
  return `from-${name.replace('/', '-')}`;
}

async function checkTransfer(
  stage: Stage,
  { kld, database: control }: Setting,
  [source, destination]: readonly [Environment, Environment],
): Promise<void> {
  const { report } = stage;
  const { database } = destination;
  const label = labelFrom(source);
  const stored = destination.stored(label);
  const title = `${source.name} into ${destination.name}`;
  const { bytes } = await source.archives.export(LABEL);

  await report.check(`${title}: is restored`, async () =>
    deepStrictEqual((await destination.archives.import(bytes, { name: label })).messages, []),
  );
  await report.check(`${title}: every row is the source's`, async () =>
    sameRows(await rowsOf(source.database, source.stored(LABEL)), await rowsOf(database, stored)),
  );
  await report.check(`${title}: every row has the destination's tenant`, async () => {
    const tenant = await control.value('select id from tenants where slug = $1', [destination.workspace]);
    const id = await database.stateId(stored);
    const tenants = await database.rows<{ tenant: string }>(
      `select distinct tenant_id as tenant from (
         select tenant_id from states where id = $1
         union all select tenant_id from state_versions where state_id = $1
         union all select tenant_id from state_version_tags where state_id = $1
         union all select tenant_id from resources where state_id = $1
         union all select tenant_id from events where state_id = $1
         union all select outputs.tenant_id from outputs
           join state_versions version on version.id = state_version_id where version.state_id = $1) rows`,
      [id],
    );
    deepStrictEqual(tenants, [{ tenant }]);
  });

  const work = await stage.workingDirectory(`${source.name}-into-${destination.name}`.replaceAll('/', '-'), {
    kld,
    state: stored,
    credential: { user: destination.scope.workspaceId, password: destination.token },
  });
  for (const file of ['main.tf', 'main.auto.tfvars.json'])
    await work.write(file, await source.work.read(file));
  await work.init();
  await report.check(`${title}: terraform plan finds nothing to do`, async () => {
    const { exitCode, stdout, stderr } = await work.plan();
    strictEqual(exitCode, 0, stdout + stderr);
  });
  await report.check(`${title}: and apply goes on at the next serial`, async () => {
    const before = await database.lastSerial(stored);
    await work.write('new.tf', 'resource "terraform_data" "new" { input = 1 }\n');
    await work.apply();
    strictEqual(await database.lastSerial(stored), before + 1);
  });
}

/** Where the environment prescribes a lock policy, it is that one, and the difference is told. */
async function checkPrescribedPolicy(stage: Stage, { kld, database, acme, other }: Setting): Promise<void> {
  const { report } = stage;
  const { bytes } = await acme.archives.export(LABEL);
  const prescribe = (mode: string) =>
    database.rows(
      `update environments set state_lock_default_mode = $1
       where tenant_id = (select id from tenants where slug = $2)`,
      [mode, other.workspace],
    );
  await report.check(
    'where the environment prescribes a lock policy, it is told that it differs',
    async () => {
      await prescribe('kilolock');
      const { operation, messages } = await other.archives.import(bytes, {
        name: 'prescribed',
        allowSharedLineage: true,
      });
      deepStrictEqual(messages, []);
      ok(operation?.report?.warnings.some(({ code }) => code === 'LOCK_POLICY_CHANGED'));
    },
  );
  await report.check('and kld locks as it is prescribed', async () => {
    const headers = { authorization: `Bearer ${other.token}` };
    const statuses: number[] = [];
    for (const id of ['first', 'second']) {
      statuses.push((await kld.lock(other.stored('prescribed'), id, id, headers)).status);
    }
    for (const id of ['first', 'second']) await kld.unlock(other.stored('prescribed'), id, headers);
    deepStrictEqual(statuses, [200, 200]);
  });
  await prescribe('auto');
}
