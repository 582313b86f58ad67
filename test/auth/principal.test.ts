import { describe, expect, test } from '@jest/globals';
import { mayAddressState, type Principal } from '../../src/auth/principal.ts';

function confinedTo(statePatterns: readonly string[] | null): Principal {
  return {
    subject: 'user-1',
    actor: 'user-1',
    scopes: new Set(),
    workspace: null,
    environment: null,
    statePatterns,
  };
}

describe('the states a principal may address', () => {
  test.each<[patterns: readonly string[] | null, label: string, expected: boolean]>([
    [null, 'prod/network', true],
    [[], 'prod/network', false],
    [['prod/network'], 'prod/network', true],
    [['prod/network'], 'prod/network2', false],
    [['prod/network'], 'prod/networ', false],
    [['prod/network'], 'PROD/network', false],
    [['prod/*'], 'prod/network', true],
    [['prod/*'], 'prod/eu/network', true],
    [['prod/*'], 'production/network', false],
    [['prod/*'], 'prod', false],
    [['dev/*', 'prod/network'], 'prod/network', true],
    [['a_b'], 'axb', false],
    [['a.*'], 'abc', false],
    [['%'], 'anything', false],
  ])('patterns %j and label %j: %j', (patterns, label, expected) => {
    expect(mayAddressState(confinedTo(patterns), label)).toBe(expected);
  });
});
