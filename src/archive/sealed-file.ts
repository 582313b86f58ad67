/** How a file begins that is encrypted with age, in bytes and as text. */
const STARTS = ['age-encryption.org/v1', '-----BEGIN AGE ENCRYPTED FILE-----'];

/** Whether a file with these first bytes is one that is encrypted with age. */
export function isSealed(head: Uint8Array): boolean {
  const text = Buffer.from(head.subarray(0, 64)).toString('latin1');
  return STARTS.some((start) => text.startsWith(start));
}
