import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { type DigestedHistory, historyDigest } from '../../src/archive/history-digest.ts';

const version = {
  id: '00000001-0000-4000-8000-000000000001',
  serial: 1n,
  sha256: 'a'.repeat(64),
  terraformVersion: '1.11.4',
  source: 'http_backend',
  createdAt: '2026-03-02T10:00:00.000118Z',
  createdBy: null,
};
const tag = {
  tag: 'é',
  serial: 1n,
  description: '',
  actor: 'ops',
  createdAt: '2026-03-02T10:00:00.000118Z',
  updatedAt: '2026-03-02T10:00:00.000119Z',
};
const history = {
  lineage: '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
  currentSerial: 1n,
  versions: [version, { ...version, serial: 10n }, { ...version, serial: 9n }],
  tags: [tag, { ...tag, tag: '🚀' }, { ...tag, tag: '\uffee' }],
} satisfies DigestedHistory;

describe('the history digest', () => {
  it('is the SHA-256 of the canonical text', () => {
    const time = '27:2026-03-02T10:00:00.000118Z';
    const fields = `64:${'a'.repeat(64)} 6:1.11.4 12:http_backend ${time} -`;
    const rest = `1:1 0: 3:ops ${time} 27:2026-03-02T10:00:00.000119Z`;
    const text = [
      'kilolock-state-history/v1',
      'lineage 36:7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
      'current_serial 1:1',
      `version 1:1 ${fields}`,
      `version 1:9 ${fields}`,
      `version 2:10 ${fields}`,
      `tag 2:é ${rest}`,
      `tag 3:\uffee ${rest}`,
      `tag 4:🚀 ${rest}`,
      '',
    ].join('\n');
    expect(historyDigest(history)).toBe(createHash('sha256').update(text).digest('hex'));
  });

  it('is the same in whatever order versions and tags come, and whatever their ids are', () => {
    const other = {
      ...history,
      versions: history.versions
        .toReversed()
        .map((v) => ({ ...v, id: '00000009-0000-4000-8000-000000000009' })),
      tags: history.tags.toReversed(),
    };
    expect(historyDigest(other)).toBe(historyDigest(history));
  });

  const changes: [string, DigestedHistory][] = [
    ['the lineage is gone', { ...history, lineage: null }],
    ['the current version is another', { ...history, currentSerial: 9n }],
    ['a version is gone', { ...history, versions: [version] }],
    ['a raw state is another', { ...history, versions: [{ ...version, sha256: 'b'.repeat(64) }] }],
    ['an author is empty instead of NULL', { ...history, versions: [{ ...version, createdBy: '' }] }],
    ['a Terraform version is NULL', { ...history, versions: [{ ...version, terraformVersion: null }] }],
    ['a source is another', { ...history, versions: [{ ...version, source: 'refresh' }] }],
    [
      'a microsecond is another',
      { ...history, versions: [{ ...version, createdAt: '2026-03-02T10:00:00.000119Z' }] },
    ],
    ['a tag is gone', { ...history, tags: [] }],
    ['a tag has moved', { ...history, tags: [{ ...tag, serial: 9n }] }],
    ['a description is NULL instead of empty', { ...history, tags: [{ ...tag, description: null }] }],
    ['a tag has another actor', { ...history, tags: [{ ...tag, actor: '' }] }],
    ['a tag was set at another time', { ...history, tags: [{ ...tag, updatedAt: tag.createdAt }] }],
  ];
  it('is another when anything it covers is', () => {
    const digests = changes.map(([, changed]) => historyDigest(changed));
    expect(new Set([historyDigest(history), ...digests]).size).toBe(changes.length + 1);
  });

  it('cannot be led to take one text for two fields', () => {
    const joined = { ...version, source: 'a 1:b', createdAt: 'c' };
    const split = { ...version, source: 'a', createdAt: 'b 1:c' };
    const digestOf = (one: typeof version) => historyDigest({ ...history, versions: [one] });
    expect(digestOf(joined)).not.toBe(digestOf(split));
  });
});
