/** The highest 64-bit integer, which is PostgreSQL's highest bigint. */
export const MAX_INT64 = 2n ** 63n - 1n;

/** Whether an integer fits into 64 bits. */
export function isInt64(value: bigint): boolean {
  return BigInt.asIntN(64, value) === value;
}

/** The integer a decimal text stands for; null when it is not one of 64 bits, written without leading zeros. "-0" is 0, as to Go. */
export function parseInt64(text: string): bigint | null {
  if (!/^-?(0|[1-9]\d{0,18})$/.test(text)) return null;
  const value = BigInt(text);
  return isInt64(value) ? value : null;
}
