/** What one state document may cost before it is refused. */
export interface StateDocumentLimits {
  /** Size of the document in bytes, and of the same document with every number written out. */
  maxBytes: number;
  /** Objects and arrays inside one another, the document itself being the first. */
  maxDepth: number;
  /** Digits of one number once written out without an exponent: `1e3` has four, `1.10` three. */
  maxNumberDigits: number;
  /** Resources, instances and outputs together: a few bytes of text become a row each. */
  maxEntries: number;
  /** Entries of all the `dependencies` lists together. */
  maxDependencies: number;
}

/**
 * The limits used when none are given. `maxBytes` is where jsonb itself ends (data model, trap 3). The
 * others stand far above any real state and far below what PostgreSQL, Go or this process could bear.
 */
export const DEFAULT_STATE_DOCUMENT_LIMITS: Readonly<StateDocumentLimits> = {
  maxBytes: 268_435_455,
  maxDepth: 512,
  maxNumberDigits: 1000,
  maxEntries: 1_000_000,
  maxDependencies: 5_000_000,
};
