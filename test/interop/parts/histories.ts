import { deepStrictEqual, ok } from 'node:assert/strict';
import { writeAppHistory } from '../histories/app.ts';
import { writeNetworkHistory } from '../histories/network.ts';
import { LOW_POINTER, ODD_NAME, writeLowPointerHistory, writeOddHistory } from '../histories/posted.ts';
import type { Part } from '../part.ts';

export const NETWORK = 'prod/network';
export const APP = 'app';

/** The newest of Kilolock's migrations that this project knows. */
const MIGRATION = 33;

export const histories: Part = {
  name: 'histories',
  title: 'Histories: written to A by Terraform, kl and plain requests',
  needs: [],
  after: [],
  async run(stage) {
    const { report } = stage;
    const [a, b] = await stage.backends();
    await report.check('kld has migrated both databases and serves them', async () => {
      for (const { database } of [a, b]) {
        ok(Number(await database.value('select max(version) from schema_migrations')) >= MIGRATION);
      }
      return a.database.value('show server_version');
    });

    if (stage.has('terraform', 'kl')) {
      const network = await stage.workingDirectory('network', { kld: a.kld, state: NETWORK });
      const { steps, refusals } = await writeNetworkHistory(network);
      await report.check(`${NETWORK}: every step goes as meant`, () => steps.assertAsMeant());
      await report.check(`${NETWORK}: writes that are wrong, or past a lock, are refused`, () =>
        deepStrictEqual(refusals, [400, 400, 409]),
      );
      const app = await stage.workingDirectory('app', { kld: a.kld, state: APP });
      const appSteps = await writeAppHistory(app);
      await report.check(`${APP}: every step goes as meant`, () => appSteps.assertAsMeant());
      stage.works.set(NETWORK, network).set(APP, app);
    } else {
      report.skip('Histories by Terraform and kl', 'they need terraform and kl');
    }

    const accepted = (answers: readonly { status: number }[]) =>
      deepStrictEqual(
        answers.filter(({ status }) => status !== 200),
        [],
      );
    const odd = await writeOddHistory(a.kld);
    await report.check(`${ODD_NAME}: genesis, gaps and drift are written`, () => accepted(odd));
    const low = await writeLowPointerHistory(a.kld);
    await report.check(`${LOW_POINTER}: a serial below the highest is written`, () => accepted(low));
    await report.check('the histories are long enough to tell something', async () => {
      const count = Number(await a.database.value('select count(*) from state_versions'));
      ok(count >= (stage.works.size > 0 ? 30 : 7), String(count));
      return `${count} versions`;
    });
  },
};
