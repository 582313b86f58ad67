import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  readStateDocument,
  type StateDocument,
} from '../../src/terraform/document.ts';
import { UnsupportedStateDocumentError } from '../../src/terraform/errors.ts';
import { projectResources } from '../../src/terraform/projection.ts';
import { createEmptyTestDatabase, type TestDatabase } from '../support/database.ts';
import { jsonbTexts } from '../support/jsonb-texts.ts';
import { kilolockCases, recordedColumn, unpack } from './support/kilolock-documents.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createEmptyTestDatabase();
});

afterAll(() => database.drop());

/** Numbers as Kilolock takes them when a document is posted. */
const POSTED = { ...DEFAULT_STATE_DOCUMENT_LIMITS, maxExpandedDigits: Number.POSITIVE_INFINITY };

const held = kilolockCases.filter(({ refused }) => refused === undefined);
const refused = kilolockCases.filter(({ refused }) => refused !== undefined);
/** Whether only an index of the database can tell: its keys are compressed first. */
const isLongKey = ({ name }: { name: string }) => /random hex digits|300000 times a/.test(name);

describe('a document that Kilolock holds has the rows that Kilolock makes of it', () => {
  test.each(held)('$name', async ({ document, rows, outputs }) => {
    const read = readStateDocument(unpack(document), POSTED);
    expect(await resourceRows(read)).toEqual(rows);
    expect(await outputRows(read)).toEqual(outputs);
  });
});

describe('its stored text has the rows that Kilolock makes of that', () => {
  test.each(held.filter(({ stored }) => stored !== undefined))(
    '$name',
    async ({ stored = '', rows, outputs, again = rows, againOutputs = outputs }) => {
      const text = unpack(stored);
      expect(await jsonbTexts(database.database.pool, [text.toString()])).toEqual([text.toString()]);
      if (again === null) {
        expect(() => readStateDocument(text)).toThrow(UnsupportedStateDocumentError);
        return;
      }
      const read = readStateDocument(text);
      expect(await resourceRows(read)).toEqual(again);
      expect(await outputRows(read)).toEqual(againOutputs);
    },
  );
});

describe('a document that Kilolock refuses is refused, with a path and a reason', () => {
  test.each(refused.filter((given) => !isLongKey(given)))('$name', ({ document }) => {
    try {
      readStateDocument(unpack(document), POSTED);
    } catch (error) {
      if (!(error instanceof UnsupportedStateDocumentError)) throw error;
      expect(error.path).toMatch(/^\$/);
      expect(error.reason).not.toMatch(/\.$/);
      return;
    }
    throw new Error('The document was accepted.');
  });
});

async function resourceRows(document: StateDocument) {
  const rows = await Promise.all(
    [...projectResources(document, new AttributesHasher('as-written')).rows()].map(async (resource) => [
      resource.address,
      resource.mode,
      resource.type,
      resource.name,
      resource.provider,
      resource.modulePath,
      resource.indexKind,
      resource.indexValue,
      ...(await kept(resource.attributes, resource.sensitivePaths, resource.dependencies)),
      resource.attributesHash,
      resource.schemaVersion,
    ]),
  );
  return rows
    .map((row) => row.map(recordedColumn))
    .sort(([a], [b]) => Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b))));
}

async function outputRows(document: StateDocument) {
  const rows = [...document.outputs()]
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
    .map(async ({ name, value, type, sensitive }) =>
      [name, ...(await kept(value, type)), sensitive].map(recordedColumn),
    );
  return Promise.all(rows);
}

function kept(...values: Buffer[]): Promise<string[]> {
  return jsonbTexts(database.database.pool, values.map(String));
}
