import { describe, expect, test } from '@jest/globals';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import { readStateDocument } from '../../src/terraform/document.ts';
import { type Projection, projectResources } from '../../src/terraform/projection.ts';
import { resourceText } from './state-text.ts';
import { LifecycleRows } from './support/lifecycle-rows.ts';

/** Rows of a version that holds the instances with these keys, each with these attributes. */
function rows(instances: Record<string, string>): Projection {
  const texts = Object.entries(instances).map(
    ([key, id]) => `{"index_key": "${key}", "attributes": {"id": "${id}"}}`,
  );
  const document = readStateDocument(
    Buffer.from(`{"version": 4, "serial": 1, "resources": [${resourceText(...texts)}]}`),
  );
  return projectResources(document, new AttributesHasher('as-written'));
}

function step(lifecycle: LifecycleRows, serial: bigint, instances: Record<string, string>) {
  return lifecycle.apply(serial, rows(instances));
}

const a = 'aws_instance.web["a"]';
const b = 'aws_instance.web["b"]';

describe('the rows of a history', () => {
  test('open when an address appears, close when it is gone, do both when it changes, and else stay', () => {
    const lifecycle = new LifecycleRows();
    expect(step(lifecycle, 0n, {})).toEqual({ opened: [], closed: [] });
    expect(step(lifecycle, 1n, { a: '1', b: '1' })).toEqual({ opened: [a, b], closed: [] });
    expect(step(lifecycle, 5n, { b: '1', a: '1' })).toEqual({ opened: [], closed: [] });
    expect(step(lifecycle, 6n, { a: '2', b: '1' })).toEqual({ opened: [a], closed: [a] });
    expect(step(lifecycle, 7n, { a: '2' })).toEqual({ opened: [], closed: [b] });
    expect(step(lifecycle, 9n, { b: '1' })).toEqual({ opened: [b], closed: [a] });
  });

  test('cannot be told out of order', () => {
    const lifecycle = new LifecycleRows();
    step(lifecycle, 2n, {});
    expect(() => step(lifecycle, 2n, {})).toThrow(RangeError);
    expect(() => step(lifecycle, 1n, {})).toThrow('serial order');
  });
});
