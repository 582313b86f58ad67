/** Whether `error` is a failure of the operating system with this code, such as `ENOENT`. */
export function isErrno(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}

/** What callers are told of a disk that {@link isDiskFull}, as a sentence. */
export const DISK_FULL = 'The disk that the service works on is full.';

/** Whether `error`, or what caused it, is that there was no room on a disk, or none left for this account. */
export function isDiskFull(error: unknown): boolean {
  if (isErrno(error, 'ENOSPC') || isErrno(error, 'EDQUOT')) return true;
  return error instanceof Error && error.cause !== undefined && isDiskFull(error.cause);
}
