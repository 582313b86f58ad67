import { expect, test } from '@jest/globals';
import { selectorsOf } from './exposition.ts';

test('an expression is read for what it asks for, and not for its functions, words and groups', () => {
  expect(
    selectorsOf(
      'histogram_quantile(0.95, sum by (le, kind) (rate(a_bucket{job=~"$job",kind!="x{y}"}[5m]))) > 1e3 and on (kind) b offset 5m or max(c) == bool 0',
    ),
  ).toEqual([
    { name: 'a_bucket', labels: ['job', 'kind'] },
    { name: 'b', labels: [] },
    { name: 'c', labels: [] },
  ]);
});
