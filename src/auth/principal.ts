/** Every scope a credential may carry that this service knows, in Kilolock's `noun.verb` style (data model 7.5). */
export const SCOPES = [
  'state.read',
  'state.export',
  'state.import',
  'state.overwrite',
  'state.retain',
  'state.raw.read',
  'state.support',
] as const;

/** A scope this service knows. */
export type Scope = (typeof SCOPES)[number];

/** One environment, by its workspace's public id (`ws_…`) and its own (`env_…`). A `StateNamespace` is one. */
export interface Environment {
  readonly workspace: string;
  readonly environment: string;
}

/** Where scopes hold: in every environment, in those of one workspace, or in one alone. */
type Reach =
  | { readonly kind: 'global' }
  | { readonly kind: 'workspace'; readonly workspace: string }
  | ({ readonly kind: 'environment' } & Environment);

/** Scopes, and where they hold. */
export interface Grant {
  readonly scopes: ReadonlySet<string>;
  readonly reach: Reach;
}

/** The row of a token of Kilolock's own, by which what it permits can be looked up again without the token. */
export interface TokenReference {
  readonly kind: 'api-token' | 'personal-access-token';
  readonly tokenId: string;
}

/**
 * Who is calling, as a verified credential says: the only source of identity there is. Nothing in it comes from a
 * plain header, from an archive, or from an argument.
 */
export interface Principal {
  /**
   * The stable identity that links and operations are bound to, unique over all kinds: claim `sub` of a JWT, else
   * `kilolock:api-token:<uuid>` or `kilolock:account:<uuid>`, which no JWT may claim to be.
   */
  readonly subject: string;
  /** The name written to history, for people to read, never for rights. */
  readonly actor: string;
  /**
   * What the credential permits anywhere at all: the first gate, which the schema's directives are. Whether it permits
   * it in the environment at hand is for {@link mayIn}. It may hold scopes that mean something only to others.
   */
  readonly scopes: ReadonlySet<string>;
  /**
   * The public id (`ws_…`) of the workspace that a label is looked up in when the request names none; null together
   * with `environment` for a self-hosted Kilolock. Both are '' for a credential that has no environment of its own and
   * must name one in each request: no environment has that id, so that forgetting it finds nothing.
   */
  readonly workspace: string | null;
  /** The public id (`env_…`) of the environment; see `workspace`. */
  readonly environment: string | null;
  /**
   * The labels the credential is confined to: exact labels, or prefixes that end in `*`. Null means every state of
   * the environment; an empty list means none.
   */
  readonly statePatterns: readonly string[] | null;
  /** The token that stands behind it; absent for a JWT. */
  readonly token?: TokenReference;
  /** When the credential ends by itself, in seconds since 1970; absent for one that is good until it is revoked. */
  readonly expiresAt?: number;
  /** Where the scopes hold; all of them in the principal's own environment and nowhere else when absent. */
  readonly grants?: readonly Grant[];
}

/** The environment of a self-hosted Kilolock: the seeded one of the zero tenant (data model 0.4). */
const SELF_HOSTED: Environment = { workspace: 'ws_000000000000', environment: 'env_000000000000' };

/** The principal's own environment by its public ids, the self-hosted one included. */
export function ownEnvironment({
  workspace,
  environment,
}: Pick<Principal, 'workspace' | 'environment'>): Environment {
  return workspace === null || environment === null ? SELF_HOSTED : { workspace, environment };
}

/**
 * Whether the principal has a scope in an environment. The environment is that of the row at hand or of the destination
 * asked for; where the credential comes from plays no part (data model 7.5). It says nothing of the states in it: that
 * is {@link mayAddressState}.
 *
 * @example
 * mayIn(principal, 'state.export', namespace);
 */
export function mayIn(principal: Principal, scope: Scope, environment: Environment): boolean {
  if (!principal.scopes.has(scope)) return false;
  const grants = principal.grants ?? [
    { scopes: principal.scopes, reach: { kind: 'environment' as const, ...ownEnvironment(principal) } },
  ];
  return grants.some(({ scopes, reach }) => scopes.has(scope) && reaches(reach, environment));
}

function reaches(reach: Reach, { workspace, environment }: Environment): boolean {
  switch (reach.kind) {
    case 'global':
      return true;
    case 'workspace':
      return reach.workspace === workspace;
    case 'environment':
      return reach.workspace === workspace && reach.environment === environment;
  }
}

/**
 * Whether the principal's state patterns cover a label. Labels are compared case-sensitively and literally, as
 * Kilolock does (data model 1.13). It says nothing of scopes, nor of whether the state exists.
 *
 * @example
 * mayAddressState({ ...principal, statePatterns: ['prod/*'] }, 'prod/network'); // true
 */
export function mayAddressState(principal: Principal, label: string): boolean {
  if (principal.statePatterns === null) return true;
  return principal.statePatterns.some((pattern) =>
    pattern.endsWith('*') ? label.startsWith(pattern.slice(0, -1)) : label === pattern,
  );
}
