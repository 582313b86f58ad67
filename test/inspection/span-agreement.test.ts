import { expect, test } from '@jest/globals';
import type { ArchivedResource } from '../../src/archive/model.ts';
import { SpanAgreement } from '../../src/inspection/span-agreement.ts';
import { readStateDocument } from '../../src/terraform/document.ts';
import { projectResources, type ResourceSummary } from '../../src/terraform/projection.ts';
import { thingsDocument } from '../restore/support/histories.ts';

/** The instances of one version, and how often one was looked for. */
class Instances extends Map<string, ResourceSummary> {
  looks = 0;

  override get(address: string): ResourceSummary | undefined {
    this.looks += 1;
    return super.get(address);
  }
}

function instances(names: readonly string[]): Instances {
  const things = Object.fromEntries(names.map((name) => [name, `{"id": "${name}"}`]));
  const document = readStateDocument(Buffer.from(thingsDocument(1n, things)));
  return new Instances(projectResources(document, 'terraform'));
}

function spanOf({ address, attributesHash }: ResourceSummary): ArchivedResource {
  const createdAt = '2026-03-02T10:00:00.000000Z';
  return { address, createSerial: 1n, deleteSerial: null, attributesHash, schemaVersion: 1, createdAt };
}

test('what the versions behind the current one cost goes by what they hold, not by what that one does', () => {
  const current = instances(Array.from({ length: 2000 }, (_, i) => `r${i}`));
  const agreement = new SpanAgreement(1n);
  agreement.check(1n, [...current.values()].map(spanOf), current);
  const later = instances(['r7']);
  for (let serial = 2n; serial <= 100n; serial += 1n) agreement.check(serial, [], later);
  expect(agreement.disagreement).toBeNull();
  expect(later.looks).toBeLessThan(200);

  agreement.check(101n, [], instances(['r7', 'another']));
  expect(agreement.disagreement).toBe('serial 101 holds an instance that no span reaches over');
});

test('a span that ends beside one that lasts, of one address and content, is a span too many', () => {
  const current = instances(['a']);
  const agreement = new SpanAgreement(1n);
  agreement.check(1n, [...current.values()].map(spanOf), current);
  const branch = [...current.values()].map((a) => ({ ...spanOf(a), createSerial: 2n, deleteSerial: 3n }));
  agreement.check(2n, branch, current);
  expect(agreement.disagreement).toBe('two spans of one address reach over serial 2');
});
