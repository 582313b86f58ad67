import { deepStrictEqual, notStrictEqual, strictEqual } from 'node:assert/strict';
import { LOW_POINTER, ODD_NAME } from '../histories/posted.ts';
import type { Part } from '../part.ts';
import { rowsOf, sameRows } from '../rows.ts';
import { roundTrip } from './round-trip.ts';

export const conflicts: Part = {
  name: 'conflicts',
  title: 'Destinations that are taken',
  needs: [],
  after: [roundTrip],
  async run(stage) {
    const { report } = stage;
    const [a, b] = await stage.backends();
    const name = ODD_NAME;
    const { bytes } = stage.exported(name);
    const another = 'another/name ü';

    await report.check('the same name again is refused', async () =>
      deepStrictEqual((await b.archives.import(bytes)).codes, ['STATE_ALREADY_EXISTS']),
    );
    await report.check('another name is refused while the lineage is in use', async () =>
      deepStrictEqual((await b.archives.import(bytes, { name: another })).codes, ['LINEAGE_IN_USE']),
    );
    await report.check('another name is taken where it is asked for on purpose', async () =>
      deepStrictEqual(
        (await b.archives.import(bytes, { name: another, allowSharedLineage: true })).messages,
        [],
      ),
    );
    await report.check("under another name, too, every row is the source's", async () =>
      sameRows(await rowsOf(a.database, name), await rowsOf(b.database, another)),
    );

    const copy = await b.archives.import(bytes, { onConflict: 'ARCHIVED_COPY' });
    await report.check('an archived copy is made beside it', () => {
      deepStrictEqual(copy.messages, []);
      strictEqual(copy.operation?.report?.outcome, 'ARCHIVED_COPY');
      return copy.operation.report.name;
    });
    await report.check('the archived copy is archived, by somebody, with a reason', async () => {
      const [row] = await b.database.rows<Record<string, string>>(
        `select lifecycle_status as status, lifecycle_reason as reason, lifecycle_changed_by as by,
           lifecycle_changed_at::text as at from states where name = $1`,
        [copy.operation?.report?.name],
      );
      strictEqual(row?.status, 'archived');
      notStrictEqual(row?.reason, '');
      strictEqual(row?.by, 'dev@localhost');
      notStrictEqual(row?.at, null);
      return row?.reason;
    });

    const overwrite = { onConflict: 'OVERWRITE', confirmName: name, allowSharedLineage: true } as const;
    await report.check('an overwrite that expects another serial is refused', async () =>
      deepStrictEqual((await b.archives.import(bytes, { ...overwrite, expectedCurrentSerial: '6' })).codes, [
        'STALE_DESTINATION',
      ]),
    );
    await report.check('an overwrite that confirms another name is refused', async () =>
      deepStrictEqual(
        (
          await b.archives.import(bytes, {
            ...overwrite,
            confirmName: 'another',
            expectedCurrentSerial: '10',
          })
        ).codes,
        ['CONFIRMATION_MISMATCH'],
      ),
    );
    await report.check('an overwrite by a lineage that lives elsewhere is refused', async () => {
      const { codes } = await b.archives.import(stage.exported(LOW_POINTER).bytes, {
        onConflict: 'OVERWRITE',
        name,
        confirmName: name,
        expectedCurrentSerial: '10',
      });
      deepStrictEqual(codes, ['LINEAGE_IN_USE']);
    });
    await report.check(
      'an overwrite keeps the old history as an archive, and puts the new in its place',
      async () => {
        const { currentSerial } = await b.archives.manifest(name);
        const { operation, messages } = await b.archives.import(bytes, {
          ...overwrite,
          expectedCurrentSerial: currentSerial ?? '',
        });
        deepStrictEqual(messages, []);
        strictEqual(operation?.report?.outcome, 'REPLACED');
        strictEqual(operation.replaced?.status, 'SUCCEEDED');
      },
    );
    await report.check("after an overwrite every row is the source's", async () =>
      sameRows(await rowsOf(a.database, name), await rowsOf(b.database, name)),
    );
  },
};
