import { ByteReader } from '../base/byte-reader.ts';
import { Digested } from '../base/digested.ts';
import { openContainer } from './container.ts';
import { ArchiveError } from './errors.ts';
import { type ArchiveLimits, serialOfMember } from './format.ts';
import type { RawState } from './model.ts';
import { type TarEntry, tarEntries } from './tar.ts';

/**
 * The raw states of an archive that has been verified, in their order. Nothing else of it is looked at: that it is still the
 * same archive shows in the digest of its file, when the last one has been taken.
 *
 * @param source The file, from its first byte to its last.
 * @param sha256 The digest that the verified file had, lower-case hex.
 * @throws ArchiveError ARCHIVE_CORRUPT when this is another file; an error of the source comes out unchanged.
 */
export async function* readRawStates(
  source: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
  sha256: string,
): AsyncGenerator<RawState, void, void> {
  const file = new Digested(source);
  const bytes = new ByteReader(openContainer(file, limits).tar);
  try {
    for await (const entry of tarEntries(bytes)) {
      const serial = serialOfMember(entry.name);
      if (serial !== null) yield { serial, byteLength: entry.size, content: contentOf(entry) };
    }
  } finally {
    await bytes.close();
  }
  if (file.sha256() !== sha256) {
    throw new ArchiveError('ARCHIVE_CORRUPT', 'the file is not the one that was verified');
  }
}

async function* contentOf({ read }: TarEntry): AsyncGenerator<Uint8Array, void, void> {
  for (let piece = await read(); piece !== null; piece = await read()) yield piece;
}
