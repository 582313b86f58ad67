/**
 * A value that is there, whatever its type says.
 *
 * @param why completes "unreachable: " and says what makes it so.
 * @throws Error when it is not: a bug.
 */
export function present<T>(value: T | null | undefined, why: string): T {
  if (value === null || value === undefined) throw new Error(`unreachable: ${why}`);
  return value;
}
