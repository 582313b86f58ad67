/** Whether `error` is a failure of the operating system with this code, such as `ENOENT`. */
export function isErrno(error: unknown, code: string): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
