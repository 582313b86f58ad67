import type { Part } from '../../part.ts';
import { checkServiceLogs } from '../../service-logs.ts';
import { checkCredentials } from './credentials.ts';
import { checkLifecycle } from './lifecycle.ts';
import { setUp } from './setting.ts';
import { checkTenancy } from './tenancy.ts';
import { checkTransfers } from './transfers.ts';

export const workspaces: Part = {
  name: 'workspaces',
  title: 'Workspaces and environments, made by klc',
  needs: ['klc', 'terraform', 'kl'],
  after: [],
  async run(stage) {
    const { report } = stage;
    const setting = await setUp(stage);
    const { acme, isolated, other, database, service } = setting;
    await checkTenancy(report, setting);
    await checkTransfers(stage, setting);
    await checkLifecycle(report, setting);
    const owners = await checkCredentials(stage, setting);
    const dsn = await database.value(`select database_dsn from environments where database_dsn <> ''`);
    await checkServiceLogs(
      report,
      'the services of the workspaces',
      [service, owners],
      [acme.token, isolated.token, other.token, dsn ?? ''],
    );
  },
};
