import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { SNAPSHOT } from '../documents.ts';
import {
  type OddDocument,
  oddDocuments,
  ordinaryDocument,
  REFUSED_DOCUMENTS,
} from '../histories/odd-documents.ts';
import type { Kld } from '../kilolock.ts';
import type { Part } from '../part.ts';
import { rowsOf, sameRows, withoutTimesAfter } from '../rows.ts';
import type { Stage } from '../stage.ts';

export const oddDocumentStates: Part = {
  name: 'odd-documents',
  title: 'Documents that kld takes although hardly anybody writes them, and some that it refuses',
  needs: [],
  after: [],
  async run(stage) {
    for (const [index, document] of oddDocuments.entries()) {
      const name = `odd/${index}`;
      const lineage = `c0ffee00-0000-4000-8000-${(0x100 + index).toString(16).padStart(12, '0')}`;
      if (await restores(stage, { name, lineage, document })) {
        await checkCopy(stage, { name, lineage, document });
      }
      await checkSnapshot(stage, { name, lineage, document });
    }
    for (const document of REFUSED_DOCUMENTS) await checkRefusal(stage, document);
  },
};

interface Case {
  readonly name: string;
  readonly lineage: string;
  readonly document: OddDocument;
}

/** The odd document as a version of the past and as the current one, between ordinary ones. */
async function restores({ report, backends }: Stage, { name, lineage, document }: Case): Promise<boolean> {
  const { what, text } = document;
  const [a, b] = await backends();
  await report.check(`${what}: kld takes and holds it`, async () => {
    await post(a.kld, name, ordinaryDocument(lineage, 'first'));
    await post(a.kld, name, text(lineage, 'second'));
    await post(a.kld, name, ordinaryDocument(lineage, 'third'));
    await post(a.kld, name, text(lineage, 'fourth'));
  });
  return report.check(`${what}: it is called exportable, exported, and restored`, async () => {
    ok((await a.archives.preview(name))?.status.exportable);
    const { bytes } = await a.archives.export(name);
    deepStrictEqual((await b.archives.import(bytes, { dryRun: true })).messages, []);
    const { messages, operation } = await b.archives.import(bytes);
    deepStrictEqual(messages, []);
    return operation?.report?.warnings.map(({ code }) => code);
  });
}

async function checkCopy({ report, backends }: Stage, { name, lineage, document }: Case): Promise<void> {
  const { what, text } = document;
  const [a, b] = await backends();
  await report.check(`${what}: every row is the source's`, async () =>
    sameRows(await rowsOf(a.database, name), await rowsOf(b.database, name)),
  );
  await report.check(`${what}: it reads, and is gone on with, at B as at A`, async () => {
    strictEqual(await b.kld.document(name), await a.kld.document(name));
    const restoredAt = await b.database.lastSerial(name);
    for (const { kld } of [a, b]) {
      await post(kld, name, text(lineage, 'fifth'));
      await post(kld, name, ordinaryDocument(lineage, 'sixth'));
    }
    const [here, there] = [await rowsOf(a.database, name), await rowsOf(b.database, name)];
    sameRows(withoutTimesAfter(here, restoredAt), withoutTimesAfter(there, restoredAt));
  });
}

/** A snapshot is appended as kld appends the document. */
async function checkSnapshot({ report, backends }: Stage, { name, lineage, document }: Case): Promise<void> {
  const { what, text } = document;
  const [, b] = await backends();
  await report.check(`${what}: importStateSnapshot writes the rows that kld writes`, async () => {
    const [ours, theirs] = [`${name}/ours`, `${name}/theirs`];
    const { data, messages } = await b.archives.ask<SnapshotData>(SNAPSHOT, {
      name: ours,
      document: text(lineage, 'only'),
    });
    const { userErrors = [] } = data?.importStateSnapshot ?? {};
    deepStrictEqual([...messages, ...userErrors.map(({ message }) => message)], []);
    const { status, body } = await b.kld.administer(theirs, 'POST', 'state/import', {
      name: theirs,
      raw_state: text(lineage, 'only'),
      source: 'import',
      actor: 'dev@localhost',
    });
    strictEqual(status, 200, JSON.stringify(body));
    const rows = async (of: string) => {
      const { states: _, ...rest } = withoutTimesAfter(await rowsOf(b.database, of), 0);
      return rest;
    };
    sameRows(await rows(theirs), await rows(ours));
  });
}

async function checkRefusal({ report, backends }: Stage, { what, text }: OddDocument): Promise<void> {
  const [, b] = await backends();
  await report.check(`${what}: kld refuses it, and so does importStateSnapshot`, async () => {
    const document = text('', 'x');
    strictEqual((await b.kld.post('refused', document)).status, 400);
    const { data, codes } = await b.archives.ask<SnapshotData>(SNAPSHOT, { name: 'refused/too', document });
    deepStrictEqual(codes, []);
    strictEqual(data?.importStateSnapshot?.userErrors[0]?.code, 'UNSUPPORTED_STATE_DOCUMENT');
  });
}

interface SnapshotData {
  readonly importStateSnapshot: {
    readonly userErrors: readonly { readonly code: string; readonly message: string }[];
  } | null;
}

async function post(kld: Kld, name: string, document: string): Promise<void> {
  const { status, body } = await kld.post(name, document);
  strictEqual(status, 200, JSON.stringify(body));
}
