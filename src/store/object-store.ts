import type { Readable } from 'node:stream';

/** A part of an object: from `start` to `end`, both included, counted from 0. */
export interface ObjectRange {
  readonly start: number;
  readonly end: number;
}

/** One object, as the store lists it. */
export interface StoredObject {
  readonly key: string;
  readonly sizeBytes: bigint;
  /** How long ago it was written, by the store's clock. */
  readonly ageMs: number;
}

/** What keeps an object from being removed, for who asks and for who does not. */
export interface Retention {
  /** Until this time, in whole seconds since 1970. Nobody shortens it; to ask for an earlier one changes nothing. */
  retainUntil(key: string, seconds: number): Promise<void>;
  /** For as long as it is held. */
  hold(key: string, isHeld: boolean): Promise<void>;
}

/** A file on this machine's disk that is whole. */
export interface LocalFile {
  readonly path: string;
  /** Lowercase hex. */
  readonly sha256: string;
}

/**
 * Files that every machine that does the work can reach, each under a key. Everything in it is as secret as the states are.
 *
 * An object is whole or not there, and never changes: of those who put different files under one key, one is first, and the
 * others are refused. A call whose answer was lost can be made again, and comes to the same. Every call throws
 * StoreUnavailableError when a store that is not on a disk cannot be reached.
 */
export interface ObjectStore {
  /**
   * Puts a copy of a local file under a key. The local one must not change until then, nor ever after: on one disk the two
   * are the same.
   *
   * @throws ObjectExistsError when a file with another digest is there.
   */
  put(key: string, file: LocalFile, signal: AbortSignal): Promise<void>;
  /** How large an object is, in bytes; null when there is none. */
  sizeOf(key: string): Promise<bigint | null>;
  /**
   * The bytes of an object; all of them without a range. To be read to its end or destroyed.
   *
   * @throws ObjectMissingError when there is none.
   */
  read(key: string, range?: ObjectRange): Promise<Readable>;
  /**
   * An address in the store itself that gives out an object for so long, to be saved under a name; null where there are no such
   * addresses. Whoever has it may use it: it is a secret.
   */
  readonly addressOf: null | ((key: string, fileName: string, seconds: number) => Promise<string>);
  /** Keeps objects that are there; null where nothing can. Each throws ObjectMissingError, and RetentionRefusedError. */
  readonly retention: Retention | null;
  /**
   * The objects whose keys begin so, in the order of their keys; of those that come or go meanwhile, some.
   *
   * @param after the key behind which to begin.
   */
  list(prefix?: string, after?: string): AsyncIterable<StoredObject>;
  /**
   * Removes an object, if it is there.
   *
   * @returns false when it is kept from being removed, and stays.
   * @throws RemovalRefusedError when the store does not let it go.
   */
  remove(key: string): Promise<boolean>;
  /**
   * Removes what others began to put and have not touched for so long.
   *
   * @throws RemovalRefusedError when it was not let go of one, after all the others are gone.
   */
  removeLeftovers(olderThanMs: number): Promise<void>;
}

/** The key is taken by another object. */
export class ObjectExistsError extends Error {
  override readonly name = 'ObjectExistsError';

  constructor(key: string) {
    super(`There is another object under the key ${key} already.`);
  }
}

/** There is no object under a key, or no longer. */
export class ObjectMissingError extends Error {
  override readonly name = 'ObjectMissingError';

  constructor(key: string, options?: ErrorOptions) {
    super(`There is no object under the key ${key}.`, options);
  }
}

/** The store was told to keep an object, and does not show that it does. */
export class RetentionRefusedError extends Error {
  override readonly name = 'RetentionRefusedError';

  /** @param reason a clause, as in "the bucket refuses it (AccessDenied)". */
  constructor(reason: string, options?: ErrorOptions) {
    super(`The archive store does not keep an object from being removed: ${reason}.`, options);
  }
}

/** The store cannot be reached, or not in time, or does not let this service in. Whoever asked can ask again. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';

  /** @param reason a code, as in "SlowDown" or "ECONNREFUSED". */
  constructor(reason: string, options?: ErrorOptions) {
    super(`The archive store cannot be reached at this moment (${reason}).`, options);
  }
}

/** The store does not let an object go. What is so with one may be otherwise with the next. */
export class RemovalRefusedError extends StoreUnavailableError {}

/**
 * Every key is made by this service, of letters, digits, dots, hyphens and underscores: it leads nowhere else, whatever a
 * store makes of it.
 */
export function assertKey(key: string): void {
  if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$/.test(key)) throw new Error('A key of the store is none.');
}
