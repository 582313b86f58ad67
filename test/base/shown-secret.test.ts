import { describe, expect, test } from '@jest/globals';
import { createSecretProof } from '../../src/base/shown-secret.ts';

describe('a secret that is shown', () => {
  test('proves who shows it, and nothing else does', () => {
    const isProof = createSecretProof(['correct horse']);
    expect(isProof('correct horse')).toBe(true);
    for (const given of [
      undefined,
      '',
      ' ',
      'correct',
      'correct horse ',
      'Correct horse',
      'correct horse, x',
      'é',
    ]) {
      expect([given, isProof(given)]).toEqual([given, false]);
    }
  });

  test('may be several while one is replaced, each good by itself and not together', () => {
    const isProof = createSecretProof(['old', 'new']);
    expect(['old', 'new', '', ',', 'old, new', 'old, new,'].map(isProof)).toEqual([
      ...[true, true],
      ...[false, false, false, false],
    ]);
  });

  test('that is not set is proven by nothing', () => {
    expect([undefined, '', 'null'].map(createSecretProof([]))).toEqual([false, false, false]);
  });
});
