import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { ordinaryDocument } from '../histories/odd-documents.ts';
import type { Part } from '../part.ts';
import { rowsOf, sameRows } from '../rows.ts';

/** Kilolock stores any name; this service restores under those that an archive and a path can carry. */
const ODD_NAMES = [
  { what: 'a name that ends in a slash', name: 'trail/' },
  { what: 'a name of more than 1 024 bytes', name: `long/${'é'.repeat(600)}` },
];

export const names: Part = {
  name: 'names',
  title: 'Names that Kilolock stores and nobody should choose',
  needs: [],
  after: [],
  async run({ report, backends }) {
    const [a, b] = await backends();
    for (const [index, { what, name }] of ODD_NAMES.entries()) {
      const lineage = `c0ffee00-0000-4000-8000-00000000020${index}`;
      const { status, body } = await a.kld.administer(name, 'POST', 'state/import', {
        name,
        raw_state: ordinaryDocument(lineage, 'x'),
        source: 'import',
        actor: 'x',
      });
      strictEqual(status, 200, JSON.stringify(body));
      const { bytes } = await a.archives.export(name);
      await report.check(
        `${what}: restoring under it is refused, and the message tells what to do`,
        async () => {
          const { codes, messages } = await b.archives.import(bytes);
          strictEqual(codes.length, 1);
          ok(/another name|`name`|"name"/.test(messages.join()), messages.join());
          return messages.join();
        },
      );
      await report.check(`${what}: under another name every row is the source's`, async () => {
        const another = `names/${index}`;
        deepStrictEqual((await b.archives.import(bytes, { name: another })).messages, []);
        return sameRows(await rowsOf(a.database, name), await rowsOf(b.database, another));
      });
    }
  },
};
