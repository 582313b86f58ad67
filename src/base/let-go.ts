/** A buffer of this length or more is never cut out of Node.js's pool. */
const OUT_OF_POOL_BYTES = Buffer.poolSize >>> 1;

/**
 * Gives back the memory of a piece of a stream that nobody looks at any more. The collector of garbage comes when much was made
 * on the heap; where hardly anything is made but such pieces, which stand outside it, it leaves tens of megabytes of them about.
 *
 * Memory that later pieces share is given back with the last of them; that of Node.js's pool never.
 */
export function letGo({ buffer, byteOffset, byteLength }: Uint8Array): void {
  const isShared = byteOffset + byteLength < buffer.byteLength;
  const mayBePooled = buffer.byteLength <= Buffer.poolSize && byteLength < OUT_OF_POOL_BYTES;
  if (!isShared && !mayBePooled && buffer instanceof ArrayBuffer) buffer.transfer(0);
}
