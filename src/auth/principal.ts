/** Every scope a credential may carry that this service knows, in Kilolock's `noun.verb` style (data model 7.5). */
export const SCOPES = ['state.read', 'state.export', 'state.import', 'state.raw.read'] as const;

/**
 * Who is calling, as a verified credential says: the only source of identity there is. Nothing in it comes from a
 * plain header, from an archive, or from an argument.
 */
export interface Principal {
  /** The stable identity at the issuer: claim `sub`. Links and operations are bound to it. */
  readonly subject: string;
  /** The name written to history: claim `name`, else `email`, else the subject. For people to read, never for rights. */
  readonly actor: string;
  /** What the credential permits; it may hold scopes that mean something only to others. */
  readonly scopes: ReadonlySet<string>;
  /** The workspace's public id (`ws_…`); null together with `environment` for a self-hosted Kilolock. */
  readonly workspace: string | null;
  /** The environment's public id (`env_…`); null together with `workspace`. */
  readonly environment: string | null;
  /**
   * The labels the credential is confined to: exact labels, or prefixes that end in `*`. Null means every state of
   * the environment; an empty list means none.
   */
  readonly statePatterns: readonly string[] | null;
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
