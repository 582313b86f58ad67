import type { Principal } from './principal.ts';

/** What a caller must be to reach something. */
export interface Requirement {
  /** Whether a verified credential is needed. Always true when scopes are. */
  readonly authenticated: boolean;
  /** The scopes needed: all of any one of these sets. Empty when none are. */
  readonly scopes: readonly (readonly string[])[];
}

/** Demands nothing: anyone. */
export const NO_REQUIREMENT: Requirement = { authenticated: false, scopes: [] };

/** Demands a verified credential, with whatever scopes: `@authenticated`. */
export const AUTHENTICATED: Requirement = { authenticated: true, scopes: [] };

/** The requirement that demands everything each of these demands, in its shortest form. */
export function allOf(requirements: Iterable<Requirement>): Requirement {
  let combined = NO_REQUIREMENT;
  for (const requirement of requirements) {
    combined = {
      authenticated: combined.authenticated || requirement.authenticated,
      scopes: combineScopes(combined.scopes, requirement.scopes),
    };
  }
  return combined;
}

/** Whether the principal is what the requirement demands; null is nobody. */
export function isMet(requirement: Requirement, principal: Principal | null): boolean {
  if (!requirement.authenticated) return true;
  // Not `=== null`: a context built without a principal must not count as somebody.
  if (!principal) return false;
  return (
    requirement.scopes.length === 0 ||
    requirement.scopes.some((set) => set.every((scope) => principal.scopes.has(scope)))
  );
}

type Scopes = Requirement['scopes'];

function combineScopes(left: Scopes, right: Scopes): Scopes {
  if (left.length === 0) return right;
  if (right.length === 0) return left;
  return withoutSupersets(left.flatMap((one) => right.map((other) => [...new Set([...one, ...other])])));
}

/** A set that holds all of another adds nothing to a choice between the two. */
function withoutSupersets(sets: Scopes): Scopes {
  return sets.filter((set, position) => {
    return !sets.some((other, otherPosition) => {
      if (otherPosition === position || !other.every((scope) => set.includes(scope))) return false;
      return other.length < set.length || otherPosition < position;
    });
  });
}
