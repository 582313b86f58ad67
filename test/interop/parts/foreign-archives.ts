import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { repackWithoutSpans } from '../archive-tools.ts';
import { configuration, configureNetwork, LATER, setNetwork } from '../histories/network.ts';
import type { Part } from '../part.ts';
import { rowsOf, sameRows } from '../rows.ts';

const NAME = 'derived';

export const foreignArchives: Part = {
  name: 'foreign-archives',
  title: 'An archive packed by other hands, without resource spans',
  needs: ['terraform', 'kl', 'zstd', 'tar', 'sha256sum'],
  after: [],
  async run(stage) {
    const { report } = stage;
    const [a, b] = await stage.backends();
    const work = await stage.workingDirectory('derived', { kld: a.kld, state: NAME });
    await configureNetwork(work);
    await work.write('dynamic-values.tf', await configuration('dynamic-values.tf'));
    await work.init();
    await work.apply();
    for (const tag of ['two', 'three']) {
      await setNetwork(work, { ...LATER, tag, many: 3 });
      await work.apply();
    }
    const { bytes } = await a.archives.export(NAME);
    const repacked = await repackWithoutSpans(stage, 'repacked', bytes);

    await report.check('packed again by tar and zstd it is read, and its spans are derived', async () => {
      const { messages, operation } = await b.archives.import(repacked);
      deepStrictEqual(messages, []);
      strictEqual(operation?.report?.resourceSpansDerived, true);
    });
    await report.check("the derived rows are Kilolock's own, hashes included", async () =>
      sameRows(await rowsOf(a.database, NAME), await rowsOf(b.database, NAME)),
    );
    await work.pointAt(b.kld);
    await work.init();
    await report.check('terraform plan on derived rows finds nothing to do', async () => {
      const { exitCode, stdout, stderr } = await work.plan();
      strictEqual(exitCode, 0, stdout + stderr);
    });
    await report.check('the next apply opens one row', async () => {
      await work.replace('main.tf', `"hello ${'$'}{var.tag}"`, '"hello five"');
      await work.apply();
      deepStrictEqual(
        await b.database.rows('select address from resources where state_id = $1 and create_serial = 4', [
          await b.database.stateId(NAME),
        ]),
        [{ address: 'terraform_data.plain' }],
      );
    });
  },
};
