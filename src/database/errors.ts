import pg from 'pg';
import { CallerError } from '../base/caller-error.ts';
import { OperatorError } from '../base/operator-error.ts';
import { PURPOSES, type Purpose } from './purposes.ts';

/**
 * Why a database could not do its part:
 *
 * - `unreachable`: there is no connection to it, or it broke.
 * - `busy`: no connection was free for as long as we wait for one.
 * - `unresponsive`: it is connected and gives no sign.
 * - `timeout`: it took longer than the purpose of the transaction allows.
 * - `locked`: somebody else held a lock for longer than we wait.
 * - `overloaded`: it is out of connections, memory or disk.
 */
type UnavailableReason = 'unreachable' | 'busy' | 'unresponsive' | 'timeout' | 'locked' | 'overloaded';

/**
 * The database could not do its part at this moment, and nothing is wrong with what was asked: asking again later may
 * succeed. What `inTransaction` throws it for was not committed; a single statement whose connection was lost may have been.
 * `message` is fit for callers; the driver's own error is the `cause`.
 */
export class DatabaseUnavailableError extends CallerError {
  override readonly name = 'DatabaseUnavailableError';
  override readonly code = 'UNAVAILABLE';
  readonly reason: UnavailableReason;

  constructor(reason: UnavailableReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/**
 * The database refuses what this service is for, and will until an operator changes it: a right is missing, or it takes no
 * writes. `message` is one line for the operator, not for callers; `/readyz` finds the same.
 */
export class DatabaseUnusableError extends OperatorError {
  override readonly name = 'DatabaseUnusableError';
}

/**
 * What an error of the driver means for a transaction of this purpose: {@link DatabaseUnavailableError},
 * {@link DatabaseUnusableError}, or the error as it is when it is about what was asked.
 */
export function interpretError(error: unknown, purpose: Purpose): unknown {
  if (!(error instanceof pg.DatabaseError)) return error;
  const { code = '' } = error;
  const { statementMs, lockMs } = PURPOSES[purpose];
  const unavailable = (reason: UnavailableReason, message: string) =>
    new DatabaseUnavailableError(reason, message, { cause: error });
  if (isEndOfSession(error))
    return unavailable('unreachable', 'The database ended the connection; try again.');
  if (code === QUERY_CANCELED) {
    const limit = statementMs === null ? '' : `: it may take ${statementMs / 1000} s`;
    return unavailable('timeout', `PostgreSQL was stopped while it worked on a statement${limit}.`);
  }
  if (code === LOCK_NOT_AVAILABLE || code === DEADLOCK_DETECTED) {
    return unavailable(
      'locked',
      `Rows that are needed are locked by somebody else, for longer than the ${lockMs / 1000} s that are waited; try again later.`,
    );
  }
  if (code.startsWith(INSUFFICIENT_RESOURCES)) {
    return unavailable('overloaded', 'The database is out of connections, memory or disk; try again later.');
  }
  if (code === INSUFFICIENT_PRIVILEGE || code === READ_ONLY_SQL_TRANSACTION) {
    return new DatabaseUnusableError(
      `The database does not let this service work: ${error.message}. docs/rights.sql grants what it needs.`,
      { cause: error },
    );
  }
  return error;
}

/** Whether PostgreSQL says with this error that it closes the connection. */
export function isEndOfSession(error: unknown): boolean {
  // Class 08 and 57P are shutdowns and lost connections, 25P03 and 25P04 the time limits on transactions.
  return error instanceof pg.DatabaseError && /^(08|57P|25P0[34])/.test(error.code ?? '');
}

/** SQLSTATE codes (PostgreSQL manual, appendix A) that this project acts on. */
const QUERY_CANCELED = '57014';
const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK_DETECTED = '40P01';
const INSUFFICIENT_RESOURCES = '53';
const INSUFFICIENT_PRIVILEGE = '42501';
const READ_ONLY_SQL_TRANSACTION = '25006';
const UNIQUE_VIOLATION = '23505';
const INTERNAL_ERROR = 'XX000';
const DUPLICATE_DATABASE = '42P04';

function hasCode(error: unknown, code: string): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && error.code === code;
}

/**
 * Whether `error` is PostgreSQL's refusal of a duplicate (23505), of exactly `constraint` when one is named
 * (a unique index counts by its own name).
 *
 * @example
 * ```ts
 * if (isUniqueViolation(error, 'states_tenant_name_key')) throw new StateAlreadyExistsError(name, { cause: error })
 * ```
 */
export function isUniqueViolation(error: unknown, constraint?: string): error is pg.DatabaseError {
  return hasCode(error, UNIQUE_VIOLATION) && (constraint === undefined || error.constraint === constraint);
}

/** PostgreSQL's refusal of a value. */
export type UnstorableValueError = pg.DatabaseError;

/**
 * Whether `error` says that a value is not one PostgreSQL can hold: class 22, such as a NUL in a text, a number out of range
 * or text that is no JSON; class 54, such as a jsonb container beyond 256 MiB or a key too long for an index; or more
 * memory for one value than it allocates at all, which has no code of its own.
 */
export function isUnstorableValue(error: unknown): error is UnstorableValueError {
  if (!(error instanceof pg.DatabaseError)) return false;
  return (
    /^(22|54)/.test(error.code ?? '') ||
    (error.code === INTERNAL_ERROR && error.message.startsWith('invalid memory alloc request size'))
  );
}

/** What PostgreSQL says of a value it refused, without the value itself: messages of class 22 may quote it. */
export function refusalText({ code, message }: UnstorableValueError): string {
  return /^22/.test(code ?? '')
    ? `PostgreSQL cannot hold a value (SQLSTATE ${code})`
    : `PostgreSQL says: ${message}`;
}

/** The row, counted from 0, that PostgreSQL was copying into a table when it refused it; null when it says none. */
export function copiedRow({ where }: pg.DatabaseError): { table: string; row: number } | null {
  // "line" in the language of the server's messages, which only an administrator can set.
  const [, table, line] = /^COPY (\w+), \p{L}+ (\d+)/mu.exec(where ?? '') ?? [];
  return table === undefined ? null : { table, row: Number(line) - 1 };
}

/**
 * Whether `error` says that the connection ended, could not be had, or was given up: whatever was asked last may have been
 * done or not, a COMMIT included.
 */
export function isConnectionLost(error: unknown): boolean {
  if (isEndOfSession(error)) return true;
  if (!(error instanceof DatabaseUnavailableError)) return false;
  return ['unreachable', 'busy', 'unresponsive'].includes(error.reason);
}

/** Whether a lock was waited for as long as one may. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof DatabaseUnavailableError && error.reason === 'locked';
}

/** Whether `error` says that the database to create exists, a creation by someone else at the same moment included. */
export function isDuplicateDatabase(error: unknown): error is pg.DatabaseError {
  return hasCode(error, DUPLICATE_DATABASE) || isUniqueViolation(error, 'pg_database_datname_index');
}
