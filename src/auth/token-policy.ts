import type { Scope } from './principal.ts';

/** What tokens of Kilolock's own may do here beside reading, and beside what Kilolock's roles grant them. */
export interface TokenPolicy {
  readonly export: boolean;
  readonly import: boolean;
}

/** The scopes that a policy comes to. */
export function policyScopes(policy: TokenPolicy): ReadonlySet<Scope> {
  const scopes = new Set<Scope>(['state.read']);
  if (policy.export) scopes.add('state.export');
  if (policy.import) scopes.add('state.import');
  return scopes;
}
