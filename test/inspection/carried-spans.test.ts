import { afterEach, expect, test } from '@jest/globals';
import type { ArchivedResource } from '../../src/archive/model.ts';
import { CarriedSpans } from '../../src/inspection/carried-spans.ts';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import { readStateDocument } from '../../src/terraform/document.ts';
import { type Projection, projectResources } from '../../src/terraform/projection.ts';
import { temporaryDirectory } from '../archive/support/temporary-directory.ts';
import { thingsDocument } from '../restore/support/histories.ts';

const inDirectory = temporaryDirectory();
let carried: CarriedSpans;
afterEach(() => carried.close());

function instances(names: readonly string[]): Projection {
  const things = Object.fromEntries(names.map((name) => [name, `{"id": "${name}"}`]));
  return projectResources(
    readStateDocument(Buffer.from(thingsDocument(1n, things))),
    new AttributesHasher('terraform'),
  );
}

function spansOf(projection: Projection, serials: Partial<ArchivedResource> = {}): ArchivedResource[] {
  return Array.from(projection.rows(), ({ address, attributesHash, schemaVersion }) => ({
    ...{ address, attributesHash, schemaVersion },
    ...{ createSerial: 1n, deleteSerial: null, createdAt: '2026-03-02T10:00:00.000000Z', ...serials },
  }));
}

/** Carries these spans, the current version being serial 1. */
function carry(spans: readonly ArchivedResource[]): void {
  carried = new CarriedSpans(inDirectory('spans'), 1n, null);
  for (const span of spans) carried.add(span);
}

test('a version behind the current one may hold less than that one does, and nothing that no span reaches over', async () => {
  const current = instances(Array.from({ length: 20 }, (_, i) => `r${i}`));
  carry(spansOf(current));
  await carried.apply({ serial: 1n }, current);
  const later = instances(['r7']);
  for (let serial = 2n; serial <= 100n; serial += 1n) await carried.apply({ serial }, later);
  expect(carried.disagreement).toBeNull();

  await carried.apply({ serial: 101n }, instances(['r7', 'another']));
  expect(carried.disagreement).toBe('serial 101 holds an instance that no span reaches over');
});

test('a span that ends beside one that lasts, of one address and content, is a span too many', async () => {
  const current = instances(['a']);
  carry([...spansOf(current), ...spansOf(current, { createSerial: 2n, deleteSerial: 3n })]);
  await carried.apply({ serial: 1n }, current);
  await carried.apply({ serial: 2n }, current);
  expect(carried.disagreement).toBe('two spans of one address reach over serial 2');
});
