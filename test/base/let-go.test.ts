import { describe, expect, it } from '@jest/globals';
import { letGo } from '../../src/base/let-go.ts';

describe('a piece of a stream that nobody looks at any more', () => {
  it('has its memory given back', () => {
    const piece = Buffer.allocUnsafeSlow(64 * 1024);
    letGo(piece);
    expect(piece).toHaveLength(0);
  });

  it('keeps the memory that later pieces share, until the last of them', () => {
    const memory = new Uint8Array(256 * 1024);
    const [first, last] = [memory.subarray(0, 200 * 1024), memory.subarray(200 * 1024)];
    letGo(first);
    expect(last).toHaveLength(56 * 1024);
    letGo(last);
    expect(first).toHaveLength(0);
  });

  it("leaves Node.js's pool alone, where others have theirs", () => {
    const lengths = [1, 100, 4000, Buffer.poolSize / 2 - 1];
    // As many as fill several pools: some end where theirs does.
    for (let round = 0; round < 2 * Buffer.poolSize; round++) {
      const length = lengths[round % lengths.length] ?? 1;
      const other = Buffer.from('other');
      letGo(Buffer.allocUnsafe(length));
      expect(other.length).toBe(5);
    }
  });
});
