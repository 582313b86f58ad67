import { deepStrictEqual } from 'node:assert/strict';
import { SNAPSHOT } from '../documents.ts';
import type { Part } from '../part.ts';
import { rowsOf, sameRows, withoutColumns, withoutTimesAfter } from '../rows.ts';

export const snapshots: Part = {
  name: 'snapshots',
  title: 'Snapshots, against what Kilolock makes of the same document',
  needs: [],
  after: [],
  async run({ report, backends }) {
    const [, b] = await backends();
    const document = JSON.stringify(SNAPSHOT_DOCUMENT, null, 2);
    await report.check('importStateSnapshot appends a version, again and again', async () => {
      const serials: unknown[] = [];
      for (let time = 1; time <= 2; time += 1) {
        const { data, messages } = await b.archives.ask<{
          importStateSnapshot: { version: unknown; userErrors: unknown[] };
        }>(SNAPSHOT, { name: 'snapshot/ours', document });
        deepStrictEqual([...messages, ...(data?.importStateSnapshot.userErrors ?? [])], []);
        serials.push(data?.importStateSnapshot.version);
      }
      deepStrictEqual(serials, [
        { serial: '1', source: 'import' },
        { serial: '2', source: 'import' },
      ]);
    });
    await report.check("it writes the rows that Kilolock's own import writes", async () => {
      for (let time = 1; time <= 2; time += 1) {
        const { status, body } = await b.kld.administer('snapshot/theirs', 'POST', 'state/import', {
          name: 'snapshot/theirs',
          raw_state: document,
          source: 'import',
          actor: 'dev@localhost',
        });
        deepStrictEqual(status, 200, JSON.stringify(body));
      }
      const rows = async (name: string) =>
        withoutColumns(withoutTimesAfter(await rowsOf(b.database, name), 0), { states: ['created_at'] });
      return sameRows(await rows('snapshot/theirs'), await rows('snapshot/ours'));
    });
  },
};

const SNAPSHOT_DOCUMENT = {
  version: 4,
  terraform_version: '1.11.4',
  serial: 57,
  lineage: 'c0ffee00-0000-4000-8000-00000000000a',
  outputs: { o: { value: ['<a>', 1.25, null], type: ['tuple', ['string', 'number', 'dynamic']] } },
  resources: [
    {
      mode: 'managed',
      type: 'terraform_data',
      name: 'a',
      provider: 'provider["terraform.io/builtin/terraform"]',
      instances: ['x', '0', 'é"'].map((key) => ({
        index_key: key,
        schema_version: 0,
        attributes: { id: key, input: { value: `<${key}>`, type: 'string' }, triggers_replace: null },
        sensitive_attributes: [],
        dependencies: ['terraform_data.b'],
      })),
    },
    {
      mode: 'managed',
      type: 'terraform_data',
      name: 'b',
      provider: 'provider["terraform.io/builtin/terraform"]',
      instances: [{ schema_version: 0, attributes: { id: 'b', input: null } }],
    },
  ],
};
