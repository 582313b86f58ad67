import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { send } from '../../http.ts';
import type { Report } from '../../report.ts';
import { type Environment, LABEL, ordered, type Setting } from './setting.ts';
import { labelFrom } from './transfers.ts';

/** What Kilolock deletes, archives and brings back, and who sees it meanwhile. */
export async function checkLifecycle(report: Report, setting: Setting): Promise<void> {
  const { kld, klc, service, acme, isolated, other } = setting;
  const { bytes, historyDigest } = await acme.archives.export(LABEL);

  const label = labelFrom(acme);
  await report.check('a restored state that kld deletes can be restored again under its name', async () => {
    const { status } = await send('DELETE', kld.stateUrl(isolated.stored(label)), {
      headers: { authorization: `Bearer ${isolated.token}` },
    });
    strictEqual(status, 200);
    deepStrictEqual((await isolated.archives.import(bytes, { name: label })).messages, []);
  });
  await report.check('and then it has the digest of its source', async () =>
    strictEqual((await isolated.archives.export(label)).historyDigest, historyDigest),
  );
  for (const environment of [isolated, other]) {
    await report.check(`klc lists what was restored into ${environment.name}`, async () => {
      const { status, body } = await klc.call(
        'GET',
        `/states/${environment.workspace}/${environment.environment}`,
      );
      strictEqual(status, 200);
      const names = (body as { states: { Name: string }[] }).states.map(({ Name }) => Name);
      ok(names.includes(environment.stored(label)), names.join());
    });
  }

  const setLifecycle = (status: string) =>
    ordered(klc, `/states/${other.workspace}/${other.environment}/lifecycle`, {
      state: other.stored('copy'),
      status,
      actor: 'operator',
      reason: 'because',
    });
  await report.check('klc brings an archived copy back', async () => {
    const copy = await other.archives.import(bytes, { name: 'copy', onConflict: 'ARCHIVED_COPY' });
    deepStrictEqual(copy.messages, []);
    strictEqual(await other.archives.preview('copy'), null);
    await setLifecycle('active');
    strictEqual((await other.archives.preview('copy'))?.manifest.historyDigest, historyDigest);
    return copy.operation?.report?.name;
  });
  await report.check('what klc archives is hidden', async () => {
    await setLifecycle('archived');
    strictEqual(await other.archives.preview('copy'), null);
  });
  await report.check('and holds its name', async () =>
    deepStrictEqual((await other.archives.import(bytes, { name: 'copy' })).codes, ['STATE_ALREADY_EXISTS']),
  );
  await report.check('support sees and exports what is archived', async () => {
    const archived = await archivedLabel(setting, other, 'copy');
    const support = service.as(
      await service.token({ scopes: ['state.read', 'state.export', 'state.support'] }),
    );
    const scope = { ...other.scope, reason: 'ticket 1' };
    strictEqual((await support.preview(archived, scope))?.lifecycleStatus, 'ARCHIVED');
    strictEqual((await support.export(archived, scope)).historyDigest, historyDigest);
    return archived;
  });
}

async function archivedLabel(
  { database }: Setting,
  environment: Environment,
  label: string,
): Promise<string> {
  const prefix = environment.stored('');
  const name = await database.value('select name from states where starts_with(name, $1)', [
    `${prefix}${label}--archived-`,
  ]);
  return (name ?? '').slice(prefix.length);
}
