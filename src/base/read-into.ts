/**
 * Fills `memory` with the bytes of a stream, where their number is known beforehand.
 *
 * @throws Error when there are fewer or more: a bug of whoever told the number.
 */
export async function readInto(memory: Uint8Array, content: AsyncIterable<Uint8Array>): Promise<void> {
  let at = 0;
  for await (const chunk of content) {
    if (chunk.length > memory.length - at)
      throw new Error(`unreachable: more than ${memory.length} bytes came`);
    memory.set(chunk, at);
    at += chunk.length;
  }
  // What was not written to holds whatever the memory held before.
  if (at < memory.length) throw new Error(`unreachable: ${at} of ${memory.length} bytes came`);
}
