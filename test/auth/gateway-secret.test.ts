import { describe, expect, test } from '@jest/globals';
import { createGatewayProof } from '../../src/auth/gateway-secret.ts';

describe('the gateway’s secret', () => {
  test('proves that a request came through the gateway, and nothing else does', () => {
    const isProof = createGatewayProof(['correct horse']);
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
    const isProof = createGatewayProof(['old', 'new']);
    expect(['old', 'new', '', ',', 'old, new', 'old, new,'].map(isProof)).toEqual([
      ...[true, true],
      ...[false, false, false, false],
    ]);
  });

  test('that is not set is proven by nothing', () => {
    expect([undefined, '', 'null'].map(createGatewayProof([]))).toEqual([false, false, false]);
  });
});
