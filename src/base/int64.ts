/** The integer a decimal text stands for; null when it is not one of 64 bits, written without leading zeros. */
export function parseInt64(text: string): bigint | null {
  if (!/^(-?[1-9]\d{0,18}|0)$/.test(text)) return null;
  const value = BigInt(text);
  return BigInt.asIntN(64, value) === value ? value : null;
}
