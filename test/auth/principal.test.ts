import { describe, expect, test } from '@jest/globals';
import { type Grant, mayAddressState, mayIn, type Principal, type Scope } from '../../src/auth/principal.ts';

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

const HERE = { workspace: 'ws_1', environment: 'env_1' };
const BESIDE = { workspace: 'ws_1', environment: 'env_2' };
const ELSEWHERE = { workspace: 'ws_2', environment: 'env_1' };
const SELF_HOSTED = { workspace: 'ws_000000000000', environment: 'env_000000000000' };

/** Where of the four environments a scope holds. */
function whereOf(principal: Principal, scope: Scope): string[] {
  return Object.entries({ HERE, BESIDE, ELSEWHERE, SELF_HOSTED })
    .filter(([, environment]) => mayIn(principal, scope, environment))
    .map(([name]) => name);
}

function principalWith(scopes: string[], changes: Partial<Principal> = {}): Principal {
  return { ...confinedTo(null), ...HERE, scopes: new Set(scopes), ...changes };
}

describe('where a scope holds', () => {
  test('is the principal’s own environment, when it has no grants', () => {
    expect(whereOf(principalWith(['state.read']), 'state.read')).toEqual(['HERE']);
    expect(whereOf(principalWith(['state.read']), 'state.export')).toEqual([]);
  });

  test('is the self-hosted environment for a principal without one', () => {
    const principal = principalWith(['state.read'], { workspace: null, environment: null });
    expect(whereOf(principal, 'state.read')).toEqual(['SELF_HOSTED']);
  });

  test('is nowhere for a principal that has to name one and holds no grant', () => {
    expect(whereOf(principalWith(['state.read'], { workspace: '', environment: '' }), 'state.read')).toEqual(
      [],
    );
  });

  const scopes = new Set(['state.export']);
  test.each<[name: string, grant: Grant, where: string[]]>([
    ['everywhere', { scopes, reach: { kind: 'global' } }, ['HERE', 'BESIDE', 'ELSEWHERE', 'SELF_HOSTED']],
    ['a workspace', { scopes, reach: { kind: 'workspace', workspace: 'ws_1' } }, ['HERE', 'BESIDE']],
    ['an environment', { scopes, reach: { kind: 'environment', ...BESIDE } }, ['BESIDE']],
  ])('is where it was granted and nowhere else: %s', (_name, grant, where) => {
    const principal = principalWith(['state.read', 'state.export'], { grants: [grant] });
    expect(whereOf(principal, 'state.export')).toEqual(where);
    expect(whereOf(principal, 'state.read')).toEqual([]);
  });

  test('does not come from two grants put together', () => {
    const principal = principalWith(['state.read', 'state.export'], {
      grants: [
        { scopes: new Set(['state.read']), reach: { kind: 'environment', ...HERE } },
        { scopes: new Set(['state.export']), reach: { kind: 'environment', ...BESIDE } },
      ],
    });
    expect(whereOf(principal, 'state.export')).toEqual(['BESIDE']);
    expect(whereOf(principal, 'state.read')).toEqual(['HERE']);
  });

  test('is nowhere, whatever the grants say, when the credential as a whole does not have it', () => {
    const grants: Grant[] = [{ scopes, reach: { kind: 'global' } }];
    expect(whereOf(principalWith(['state.read'], { grants }), 'state.export')).toEqual([]);
  });
});
