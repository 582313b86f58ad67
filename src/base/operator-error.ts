import { redactSecrets } from './error-log.ts';

/**
 * Something that whoever starts the process has to mend: a setting, a file, the database it is pointed at. `message` is one
 * line that says what is wrong and what to do, without secrets; it is printed as it is, without a stack.
 */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}

const MAX_REASON_LENGTH = 500;

/**
 * For the errors of a step of the start that only the operator can mend: `work.catch(blameOperator('DATA_DIR cannot be used'))`.
 * What is one line for the operator already, and what is a bug, are thrown as they are.
 *
 * @param problem what cannot be used; the reason follows.
 */
export function blameOperator(problem: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof OperatorError || isBug(error)) throw error;
    throw new OperatorError(`${problem}: ${reasonOf(error)}`, { cause: error });
  };
}

/**
 * Ends a program that failed: with one line on standard error for what the operator has to mend, with the stack for a bug.
 * Standard output is left to what the program was asked for.
 */
export function exitWith(error: unknown): never {
  const isForOperator = error instanceof OperatorError;
  process.stderr.write(`${isForOperator ? error.message : redactSecrets(stackOf(error))}\n`);
  process.exit(1);
}

/** What JavaScript itself throws, but for what Node.js says, with a code, of a port or an address out of a setting. */
function isBug(error: unknown): boolean {
  const kinds = [TypeError, RangeError, ReferenceError, SyntaxError, EvalError];
  return kinds.some((kind) => error instanceof kind) && !(error instanceof Error && 'code' in error);
}

/** What an error of the system, of a driver or of a child process says, in one line. */
function reasonOf(error: unknown): string {
  // One attempt for each address of a host name; they fail alike.
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return 'an unknown failure';
  if (error.cause instanceof Error) return reasonOf(error.cause);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const message = redactSecrets(error.message).replace(/\s+/g, ' ').trim().slice(0, MAX_REASON_LENGTH);
  return code === '' || message.includes(code) ? message : `${message} (${code})`;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
