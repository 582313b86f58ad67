import pg from 'pg';

/** SQLSTATE codes (PostgreSQL manual, appendix A) that this project acts on. */
const UNIQUE_VIOLATION = '23505';
const INVALID_SCHEMA_NAME = '3F000';
const UNDEFINED_TABLE = '42P01';
const LOCK_NOT_AVAILABLE = '55P03';
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

/**
 * Whether `error` says that a value is not one PostgreSQL can hold: class 22, such as a NUL in a text, a number out of range
 * or text that is no JSON, or class 54, such as a jsonb container beyond 256 MiB.
 */
export function isUnstorableValue(error: unknown): error is pg.DatabaseError {
  return error instanceof pg.DatabaseError && /^(22|54)/.test(error.code ?? '');
}

/**
 * Whether `error` says that the connection ended, could not be had, or was given up: whatever was asked last may have been
 * done or not, a COMMIT included. The server's own words for it are class 08, its shutdown (57P01 to 57P03) and the
 * timeouts that end a session (57P05, 25P03); everything else the driver and the system say.
 */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08...|57P0[1235]|25P03)$/.test(error.code ?? '');
  if (!(error instanceof Error)) return false;
  if ('syscall' in error && 'code' in error) return !('path' in error);
  return /^Connection terminated|^timeout exceeded when trying to connect|not queryable|^Query read timeout/.test(
    error.message,
  );
}

/** Whether a lock was waited for as long as one may (55P03). */
export function isLockTimeout(error: unknown): error is pg.DatabaseError {
  return hasCode(error, LOCK_NOT_AVAILABLE);
}

/** Whether `error` says that the table, or the schema it should be in, does not exist. */
export function isMissingTable(error: unknown): error is pg.DatabaseError {
  return hasCode(error, UNDEFINED_TABLE) || hasCode(error, INVALID_SCHEMA_NAME);
}

/** Whether `error` says that the database to create exists, a creation by someone else at the same moment included. */
export function isDuplicateDatabase(error: unknown): error is pg.DatabaseError {
  return hasCode(error, DUPLICATE_DATABASE) || isUniqueViolation(error, 'pg_database_datname_index');
}
