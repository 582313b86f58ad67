import { describe, expect, test } from '@jest/globals';
import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  readStateDocument,
  type StateDocument,
} from '../../src/terraform/document.ts';
import { UnsupportedStateDocumentError } from '../../src/terraform/errors.ts';
import { isJsonbText, jsonbText } from '../../src/terraform/jsonb-text.ts';
import { projectResources } from '../../src/terraform/projection.ts';
import { kilolockCases, recordedColumn, unpack } from './support/kilolock-documents.ts';

/** Numbers as Kilolock takes them when a document is posted. */
const POSTED = { ...DEFAULT_STATE_DOCUMENT_LIMITS, maxExpandedDigits: Number.POSITIVE_INFINITY };

const held = kilolockCases.filter(({ refused }) => refused === undefined);
const refused = kilolockCases.filter(({ refused }) => refused !== undefined);
/** Whether only an index of the database can tell: its keys are compressed first. */
const isLongKey = ({ name }: { name: string }) => /random hex digits|300000 times a/.test(name);

describe('a document that Kilolock holds has the rows that Kilolock makes of it', () => {
  test.each(held)('$name', ({ document, rows, outputs }) => {
    const read = readStateDocument(unpack(document), POSTED);
    expect(resourceRows(read)).toEqual(rows);
    expect(outputRows(read)).toEqual(outputs);
  });
});

describe('its stored text has the rows that Kilolock makes of that', () => {
  test.each(held.filter(({ stored }) => stored !== undefined))(
    '$name',
    ({ stored = '', rows, outputs, again = rows, againOutputs = outputs }) => {
      const text = unpack(stored);
      expect(isJsonbText(text)).toBe(true);
      if (again === null) {
        expect(() => readStateDocument(text)).toThrow(UnsupportedStateDocumentError);
        return;
      }
      const read = readStateDocument(text);
      expect(resourceRows(read)).toEqual(again);
      expect(outputRows(read)).toEqual(againOutputs);
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

function resourceRows(document: StateDocument) {
  return [...projectResources(document, 'as-written').rows()]
    .map((resource) =>
      [
        resource.address,
        resource.mode,
        resource.type,
        resource.name,
        resource.provider,
        resource.modulePath,
        resource.indexKind,
        resource.indexValue,
        jsonbText(resource.attributes).toString(),
        jsonbText(resource.sensitivePaths).toString(),
        jsonbText(Buffer.from(resource.dependenciesRaw)).toString(),
        resource.attributesHash,
        resource.schemaVersion,
      ].map(recordedColumn),
    )
    .sort(([a], [b]) => Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b))));
}

function outputRows(document: StateDocument) {
  return [...document.outputs()]
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
    .map(({ name, value, type, sensitive }) =>
      [name, jsonbText(value).toString(), jsonbText(type).toString(), sensitive].map(recordedColumn),
    );
}
