import { strictEqual } from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Part } from '../part.ts';
import { rowsOf, sameRows, withoutColumns } from '../rows.ts';

/** This project's own `kl`. */
const KL = fileURLToPath(new URL('../../../bin/kl', import.meta.url));
const DOCUMENTS = fileURLToPath(new URL('../../fixtures/terraform-history/', import.meta.url));
const NAME = 'built';

export const builtHistories: Part = {
  name: 'built-histories',
  title: 'A folder of state files that Terraform wrote, brought by kl archive build',
  needs: [],
  after: [],
  async run(stage) {
    const { report, processes } = stage;
    const [a, b] = await stage.backends();
    const files = (await readdir(DOCUMENTS)).filter((name) => name.endsWith('.tfstate')).sort();
    for (const file of files) {
      const { status, body } = await a.kld.post(NAME, await readFile(join(DOCUMENTS, file), 'utf8'));
      strictEqual(status, 200, JSON.stringify(body));
    }
    const directory = await stage.scratch('built-histories');
    const environment = {
      HOME: directory,
      KL_ENDPOINT: b.service.endpoint,
      KL_TOKEN: await b.service.token(),
    };
    const kl = async (...args: string[]) => {
      const { exitCode, stdout, stderr } = await processes.run(KL, args, { directory, environment });
      strictEqual(exitCode, 0, stdout + stderr);
      return stdout;
    };
    const written = await a.database.rows<Record<'created_at' | 'created_by' | 'source', string | null>>(
      `select to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as created_at, created_by, source
       from state_versions where state_id = $1 order by serial`,
      [await a.database.stateId(NAME)],
    );
    const lines = written.map(({ created_at, created_by, source }, at) =>
      [files[at], created_at, created_by, source].join(','),
    );
    await writeFile(join(directory, 'when.csv'), ['file,created_at,created_by,source', ...lines].join('\n'));

    await report.check('the files become an archive, which is imported', async () => {
      await kl(
        'archive',
        'build',
        DOCUMENTS,
        '--name',
        NAME,
        '-o',
        'built.klstate',
        '--manifest',
        'when.csv',
      );
      await kl('import', 'archive', 'built.klstate', '--yes');
    });
    await report.check(
      "every row is that of having written them, but for events and the state's own times",
      async () => {
        // Nobody recorded them beside the files.
        const told = async (database: typeof a.database) =>
          withoutColumns({ ...(await rowsOf(database, NAME)), events: [] }, { states: ['created_at'] });
        return sameRows(await told(a.database), await told(b.database));
      },
    );
    await report.check('a raw state that was extracted is what Terraform wrote', async () => {
      const text = await kl('archive', 'extract', 'built.klstate', '--version', '7');
      strictEqual(text, await readFile(join(DOCUMENTS, '007.tfstate'), 'utf8'));
    });
  },
};
