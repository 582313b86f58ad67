/** What one state document may cost before it is refused. */
export interface StateDocumentLimits {
  /** Size of the document in bytes, and of the same document with every number written out. */
  maxBytes: number;
  /**
   * Digits of a number with an exponent, once it is written out without: `1e3` has four. Eight bytes can stand for a
   * hundred thousand; a raw state that Kilolock gave out has no exponents.
   */
  maxExpandedDigits: number;
  /** Resources, instances and outputs together: a few bytes of text become a row each. */
  maxEntries: number;
  /** Entries of all the `dependencies` lists together. */
  maxDependencies: number;
}

/**
 * The limits used when none are given. `maxBytes` is where jsonb itself ends (data model, trap 3); the others
 * stand far above any real state and below what this process can bear.
 */
export const DEFAULT_STATE_DOCUMENT_LIMITS: Readonly<StateDocumentLimits> = {
  maxBytes: 268_435_455,
  maxExpandedDigits: 1000,
  maxEntries: 1_000_000,
  maxDependencies: 5_000_000,
};

/** Those of a document that becomes a version by itself: Kilolock takes its numbers as PostgreSQL does. */
export const SNAPSHOT_LIMITS: Readonly<StateDocumentLimits> = {
  ...DEFAULT_STATE_DOCUMENT_LIMITS,
  maxExpandedDigits: Number.POSITIVE_INFINITY,
};

/**
 * How many bytes of rows the instances of a document may repeat of what their resources say: its mode, type, name, provider
 * and module stand in the row of each, and most of them in its address.
 */
export const MAX_REPEATED_BYTES = 268_435_455;

/** Objects and arrays inside one another, the document itself being the first: where Go's decoder ends. */
export const MAX_DEPTH = 10_000;

/**
 * A text that goes into an index of Kilolock's by itself or as a part of an address, as it is spelled, escapes and quotes
 * included. An index holds 2 704 bytes, to which the best compression brings a megabyte at most, six times as long when it is
 * spelled in escapes. What is longer need not be read to know that.
 */
export const MAX_INDEXED_BYTES = 8_388_608;

/**
 * A text that is in no index and nevertheless read as a string, as it is spelled: the provider of a resource, the version of
 * Terraform. A few that are longer would fill the memory of a thread.
 */
export const MAX_STRING_BYTES = 8_388_608;

/**
 * A longer document is compared with none, neither the one before nor the one after: both would have to be in memory, and what
 * it takes to know its resources again.
 */
export const MAX_COMPARED_BYTES = 32 * 1024 * 1024;

/** What is wrong with one that is longer than {@link MAX_INDEXED_BYTES}, as the end of a clause. */
export const TOO_LONG_FOR_AN_INDEX = `has more than ${MAX_INDEXED_BYTES} bytes, which no index of PostgreSQL holds`;

/**
 * How far PostgreSQL's `numeric` goes, in which jsonb keeps its numbers: digits before the decimal point and after
 * it, once a number is written out without an exponent, and the exponent itself.
 */
export const NUMERIC = {
  maxIntegerDigits: 131_072,
  maxDecimals: 16_383,
  maxExponent: 1_073_741_822,
} as const;
