import { ByteReader } from '../base/byte-reader.ts';
import { Digested } from '../base/digested.ts';
import { Container } from './container.ts';
import { ArchiveError } from './errors.ts';
import { type ArchiveLimits, serialOfMember } from './format.ts';
import type { RawState } from './model.ts';
import { TarReader } from './tar.ts';

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
  const bytes = new ByteReader(new Container(file, limits).tar());
  try {
    const tar = new TarReader(bytes);
    for (let entry = await tar.next(); entry !== null; entry = await tar.next()) {
      const serial = serialOfMember(entry.name);
      if (serial !== null) yield { serial, byteLength: entry.size, content: contentOf(tar) };
      while ((await tar.read()) !== null);
    }
  } finally {
    await bytes.close();
  }
  if (file.sha256() !== sha256) {
    throw new ArchiveError('ARCHIVE_CORRUPT', 'the file is not the one that was verified');
  }
}

async function* contentOf(tar: TarReader): AsyncGenerator<Uint8Array, void, void> {
  for (let piece = await tar.read(); piece !== null; piece = await tar.read()) yield piece;
}
