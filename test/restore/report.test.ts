import { expect, it } from '@jest/globals';

import { type RestoreReport, readReport, writeReport } from '../../src/restore/report.ts';

const report: RestoreReport = {
  dryRun: false,
  outcome: 'REPLACED',
  name: 'team/app',
  replacedVersions: 3,
  sourceName: 'team/app',
  sourceStateId: '00000000-0000-4000-8000-000000000001',
  versions: 2,
  tags: 1,
  events: 4,
  resourceSpans: 5,
  resourceSpansDerived: true,
  outputs: 6,
  rawBytes: 9_007_199_254_740_993n,
  historyDigest: '62b4a29467b43aaa266f410cb848d2f6cd660784f06d1ceeaf6d1458eddf5f59',
  normalisedVersions: 0,
  signature: { verified: true, keyIds: ['62b4a29467b43aaa266f410cb848d2f6cd660784f06d1ceeaf6d1458eddf5f59'] },
  warnings: [
    { code: 'SERIAL_MISMATCH', message: 'The serials differ.', serial: 9_223_372_036_854_775_806n },
    { code: 'RESOURCE_SPANS_DERIVED', message: 'The spans were derived.', serial: null },
  ],
};

it('is read as it was written', () => {
  expect(readReport(writeReport(report))).toEqual(report);
});

it('has the message of a warning whose code only a later release knows', () => {
  const later = writeReport(report).replace('SERIAL_MISMATCH', 'NOVELTY');
  expect(readReport(later)).toEqual({
    ...report,
    warnings: [{ ...report.warnings[0], code: null }, report.warnings[1]],
  });
});

it('of a release that looked at no signatures tells of none', () => {
  const { signature, ...earlier } = report;
  expect(readReport(writeReport(earlier as RestoreReport))).toEqual({ ...earlier, signature: null });
});

it('is read without the fields that only a later release knows', () => {
  expect(readReport(writeReport(report).replace('{', '{"novelty": [1],'))).toEqual(report);
});

it.each([
  ['an outcome', '"REPLACED"', '"MERGED"'],
  ['another form of a field', '"outputs":6', '"outputs":{"kept":6}'],
  ['fewer fields', '"outputs":6,', ''],
])('is none where a later release recorded %s', (_, from, to) => {
  const later = writeReport(report).replace(from, to);
  expect(later).not.toBe(writeReport(report));
  expect(readReport(later)).toBeNull();
});
