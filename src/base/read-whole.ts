/**
 * The bytes of a stream as one piece of memory, where their number is known beforehand.
 *
 * @throws Error when there are fewer or more: a bug of whoever told the number.
 */
export async function readWhole(content: AsyncIterable<Uint8Array>, byteLength: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(byteLength);
  let at = 0;
  for await (const chunk of content) {
    if (chunk.byteLength > byteLength - at)
      throw new Error(`unreachable: more than ${byteLength} bytes came`);
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  // What was not written to holds whatever the memory held before.
  if (at < byteLength) throw new Error(`unreachable: ${at} of ${byteLength} bytes came`);
  return bytes;
}
