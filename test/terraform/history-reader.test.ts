import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { AttributeLayout } from '../../src/terraform/attributes-hash.ts';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  readStateDocument,
  type StateDocumentLimits,
} from '../../src/terraform/document.ts';
import { UnsupportedStateDocumentError } from '../../src/terraform/errors.ts';
import { StateHistoryReader } from '../../src/terraform/history-reader.ts';
import { MAX_COMPARED_BYTES } from '../../src/terraform/limits.ts';
import { type Projection, projectResources } from '../../src/terraform/projection.ts';
import { INSTANCE } from '../../src/terraform/state-index.ts';
import { choices } from '../support/choices.ts';
import { editedHistory } from './support/edited-history.ts';
import { LifecycleRows } from './support/lifecycle-rows.ts';

/** How many random histories are read, and from which seed on: from another each time when none is given. */
const HISTORIES = Number(process.env.HISTORIES ?? 400);
const SEED = process.env.HISTORIES_SEED;

/** Reads a history with a reader for all of it, in two buffers taken in turn. */
function readTogether(layout: AttributeLayout, limits: StateDocumentLimits) {
  const reader = new StateHistoryReader(layout, limits);
  let last = Buffer.alloc(0);
  return (bytes: Buffer) => {
    const copy = Buffer.from(bytes);
    try {
      return reader.read(copy);
    } finally {
      // What the reader promises not to look at any more.
      last.fill('?');
      last = copy;
    }
  };
}

/** Reads each document of a history as if there were no other. */
function readAlone(layout: AttributeLayout, limits: StateDocumentLimits) {
  return (bytes: Buffer) => {
    const document = readStateDocument(bytes, limits);
    return projectResources(document, new AttributesHasher(layout));
  };
}

/** Everything that reading a history gives, one entry a version; and the rows of `resources` it leaves. */
function readings(history: readonly Buffer[], read: (bytes: Buffer) => Projection) {
  const lifecycle = new LifecycleRows();
  const versions = history.map((bytes, serial) => {
    try {
      const projection = read(bytes);
      lifecycle.apply(BigInt(serial), projection);
      return contents(projection);
    } catch (error) {
      if (!(error instanceof UnsupportedStateDocumentError)) throw error;
      return `${error.path}: ${error.reason}`;
    }
  });
  return { versions, rows: lifecycle.rows };
}

function contents(projection: Projection) {
  const { document } = projection;
  const { serial, lineage, terraformVersion, depth, width, jsonbBytes } = document.index;
  return {
    ...{ serial, lineage, terraformVersion, depth, width, jsonbBytes },
    managedInstances: document.managedInstances,
    outputs: Array.from(document.outputs(), shown),
    instances: Array.from(document.instances(), shown),
    size: projection.table.size,
    sharedAddresses: [...projection.sharedAddresses()],
    resources: Array.from(projection.rows(), shown),
  };
}

/** How many instances were taken over from the document before. */
function takenOver({ document }: Projection): number {
  return [...document.rows()].filter((row) => document.index.instances.get(row, INSTANCE.from) !== 0).length;
}

/** An object with its bytes as text. */
function shown(object: object): Record<string, unknown> {
  const members = Object.entries(object);
  return Object.fromEntries(
    members.map(([name, value]) => [name, Buffer.isBuffer(value) ? value.toString() : value]),
  );
}

/** Limits that a history may just keep or just miss. */
const limits = fc.record({
  /** By how much the largest document may grow. */
  room: fc.oneof(fc.constant(1_000_000), fc.integer({ min: -20, max: 2000 })),
  maxExpandedDigits: fc.constantFrom(1000, 50),
  maxEntries: fc.oneof(fc.constant(1_000_000), fc.integer({ min: 4, max: 60 })),
  maxDependencies: fc.oneof(fc.constant(5_000_000), fc.integer({ min: 0, max: 40 })),
});

describe('a history read together', () => {
  test.each(['terraform', 'as-written'] as const)(
    'has the verdicts, contents and rows it has read one by one, in the layout %s',
    (layout) => {
      fc.assert(
        fc.property(choices(400), limits, (choice, { room, ...counts }) => {
          const history = editedHistory(choice);
          const limits = { ...counts, maxBytes: Math.max(...history.map(({ length }) => length)) + room };
          expect(readings(history, readTogether(layout, limits))).toEqual(
            readings(history, readAlone(layout, limits)),
          );
        }),
        { numRuns: HISTORIES, ...(SEED === undefined ? {} : { seed: Number(SEED) }) },
      );
    },
  );
});

const COUNT = 1000;

interface Thing {
  readonly name: string;
  readonly id: string;
}

/** Things as resources with an instance each, or as instances of one resource, in the texts of jsonb and of Terraform. */
const SHAPES = {
  'resources as PostgreSQL spells them': (things: readonly Thing[]) =>
    things.map(
      ({ name, id }) =>
        `{"mode": "managed", "name": "${name}", "type": "thing", "provider": "p", "instances": [{"private": "bnVsbA==", "attributes": {"id": "${id}"}, "schema_version": 0}]}`,
    ),
  'resources as Terraform spells them': (things: readonly Thing[]) =>
    things.map(
      ({ name, id }) =>
        `{\n  "module": "module.m",\n  "mode": "managed",\n  "type": "thing",\n  "name": "${name}",\n  "provider": "p",\n  "instances": [\n    {\n      "schema_version": 0,\n      "attributes": {\n        "id": "${id}"\n      }\n    }\n  ]\n}`,
    ),
  'instances as PostgreSQL spells them': (things: readonly Thing[]) => [
    `{"mode": "managed", "name": "all", "type": "thing", "provider": "p", "instances": [${things
      .map(
        ({ name, id }) =>
          `{"private": "bnVsbA==", "index_key": "${name}", "attributes": {"id": "${id}"}, "schema_version": 0}`,
      )
      .join(', ')}]}`,
  ],
  'instances as Terraform spells them': (things: readonly Thing[]) => [
    `{"mode": "managed", "type": "thing", "name": "all", "provider": "p", "instances": [${things
      .map(
        ({ name, id }) =>
          `{"index_key": "${name}", "schema_version": 0, "attributes": {"id": "${id}"}, "private": "bnVsbA=="}`,
      )
      .join(', ')}]}`,
  ],
};

function documentOf(resources: readonly string[]): Buffer {
  return Buffer.from(`{"serial": 1, "version": 4, "resources": [${resources.join(', ')}]}`);
}

function things(prefix: string, count: number): Thing[] {
  return Array.from({ length: count }, (_, i) => ({ name: `${prefix}${i}`, id: `i-${i}` }));
}

const all = things('r', COUNT);
const renamed = ({ name, id }: Thing): Thing => ({ name: `x${name}`, id });
const changed = ({ name, id }: Thing): Thing => ({ name, id: `x${id}` });

describe.each(Object.entries(SHAPES))('of %s those that did not change are taken over', (_shape, spelled) => {
  test.each([
    ['when nothing has changed', all, COUNT],
    ['when 40 are gone in front', all.slice(40), COUNT - 40],
    ['when 40 are new in front', [...things('a', 40), ...all], COUNT],
    ['when 40 in front have another name', all.map((one, i) => (i < 40 ? renamed(one) : one)), COUNT - 40],
    ['when one has changed', all.map((one, i) => (i === 500 ? changed(one) : one)), COUNT - 1],
    ['when every second has changed', all.map((one, i) => (i % 2 > 0 ? changed(one) : one)), COUNT / 2],
    ['when every second is gone', all.filter((_, i) => i % 2 > 0), COUNT / 2],
    ['when every second has another name', all.map((one, i) => (i % 2 > 0 ? renamed(one) : one)), COUNT / 2],
    ['when two have changed places', [...all.slice(1, 2), ...all.slice(0, 1), ...all.slice(2)], COUNT],
    ['when all stand in another order', all.toReversed(), COUNT],
  ])('%s', (_when, after, unchanged) => {
    const reader = new StateHistoryReader('terraform');
    expect(takenOver(reader.read(documentOf(spelled(all))))).toBe(0);
    expect(takenOver(reader.read(documentOf(spelled(after))))).toBe(unchanged);
  });
});

test.each(Object.entries(SHAPES).filter(([shape]) => shape.endsWith('as PostgreSQL spells them')))(
  'of %s nothing is taken over from or into a document that is too long to be compared',
  (_shape, spelled) => {
    const padded = (bytes: number) =>
      Buffer.concat([documentOf(spelled(all)), Buffer.alloc(bytes - documentOf(spelled(all)).length, ' ')]);
    const history = [
      padded(MAX_COMPARED_BYTES),
      padded(MAX_COMPARED_BYTES + 1),
      padded(MAX_COMPARED_BYTES),
      padded(MAX_COMPARED_BYTES),
    ];
    const reader = new StateHistoryReader('terraform');
    expect(history.map((bytes) => takenOver(reader.read(bytes)))).toEqual([0, 0, 0, COUNT]);
    const limits = DEFAULT_STATE_DOCUMENT_LIMITS;
    expect(readings(history, readTogether('terraform', limits))).toEqual(
      readings(history, readAlone('terraform', limits)),
    );
  },
);

test('after a document that was refused nothing is taken over', () => {
  const reader = new StateHistoryReader('terraform');
  const document = documentOf(SHAPES['resources as PostgreSQL spells them'](all));
  reader.read(document);
  expect(() => reader.read(document.subarray(0, -1))).toThrow(UnsupportedStateDocumentError);
  expect(takenOver(reader.read(document))).toBe(0);
  expect(takenOver(reader.read(document))).toBe(COUNT);
});

describe('what is found only when a scan has begun', () => {
  const instance = (key: number, ...members: string[]) =>
    `{"index_key": ${key}, "identity": {"n": 1e90}, "dependencies": ["a", "b"], "attributes": {}${members.join('')}}`;
  const resource = (...lists: string[]) =>
    `{"mode": "managed", "name": "all", "type": "thing", ${lists.map((list) => `"instances": ${list}`).join(', ')}}`;

  test('is counted once, so that a document may come up to its limits', () => {
    const first = documentOf([resource(`[${instance(1)}, ${instance(2)}, ${instance(3)}]`)]);
    const second = documentOf([resource(`[${instance(2)}, ${instance(3)}]`)]);
    const gained = 2 * (91 - '1e90'.length);
    const limits = { ...DEFAULT_STATE_DOCUMENT_LIMITS, maxBytes: second.length + gained, maxDependencies: 4 };
    const reader = new StateHistoryReader('terraform');
    reader.read(first);
    expect(takenOver(reader.read(second))).toBe(2);
    expect(() => readStateDocument(second, limits, readStateDocument(first))).not.toThrow();
    const tooFew = { ...limits, maxDependencies: 3 };
    expect(() => readStateDocument(second, tooFew, readStateDocument(first))).toThrow('dependencies');
  });

  test('is not taken for what is read into another', () => {
    const history = [
      documentOf([resource(`[${instance(1)}]`)]),
      documentOf([resource(`[${instance(1, ', "schema_version": 1')}]`, `[${instance(1)}]`)]),
    ];
    expect(readings(history, readTogether('terraform', DEFAULT_STATE_DOCUMENT_LIMITS))).toEqual(
      readings(history, readAlone('terraform', DEFAULT_STATE_DOCUMENT_LIMITS)),
    );
  });
});
