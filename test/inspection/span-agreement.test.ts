import { expect, test } from '@jest/globals';
import type { ArchivedResource } from '../../src/archive/model.ts';
import { SpanAgreement } from '../../src/inspection/span-agreement.ts';
import { readStateDocument } from '../../src/terraform/document.ts';
import { type Projection, projectResources } from '../../src/terraform/projection.ts';
import { thingsDocument } from '../restore/support/histories.ts';

function instances(names: readonly string[]): Projection {
  const things = Object.fromEntries(names.map((name) => [name, `{"id": "${name}"}`]));
  return projectResources(readStateDocument(Buffer.from(thingsDocument(1n, things))), 'terraform');
}

function spansOf(projection: Projection, serials: Partial<ArchivedResource> = {}): ArchivedResource[] {
  return Array.from(projection.rows(), ({ address, attributesHash, schemaVersion }) => ({
    ...{ address, attributesHash, schemaVersion },
    ...{ createSerial: 1n, deleteSerial: null, createdAt: '2026-03-02T10:00:00.000000Z', ...serials },
  }));
}

function check(
  agreement: SpanAgreement,
  serial: bigint,
  begun: readonly ArchivedResource[],
  held: Projection,
) {
  agreement.check(serial, held, begun, () => {});
}

test('a version behind the current one may hold less than that one does, and nothing that no span reaches over', () => {
  const current = instances(Array.from({ length: 20 }, (_, i) => `r${i}`));
  const agreement = new SpanAgreement(1n);
  check(agreement, 1n, spansOf(current), current);
  const later = instances(['r7']);
  for (let serial = 2n; serial <= 100n; serial += 1n) check(agreement, serial, [], later);
  expect(agreement.disagreement).toBeNull();

  check(agreement, 101n, [], instances(['r7', 'another']));
  expect(agreement.disagreement).toBe('serial 101 holds an instance that no span reaches over');
});

test('a span that ends beside one that lasts, of one address and content, is a span too many', () => {
  const current = instances(['a']);
  const agreement = new SpanAgreement(1n);
  check(agreement, 1n, spansOf(current), current);
  check(agreement, 2n, spansOf(current, { createSerial: 2n, deleteSerial: 3n }), current);
  expect(agreement.disagreement).toBe('two spans of one address reach over serial 2');
});
