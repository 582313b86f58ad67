import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it, test } from '@jest/globals';
import { generateHybridIdentity, generateX25519Identity, identityToRecipient } from 'age-encryption';
import { verifyArchive } from '../../src/archive/reader.ts';
import { isRecipient, type Sealing, sealFile } from '../../src/archive/seal.ts';
import { readIdentities, unseal } from '../../src/archive/unseal.ts';
import { buildArchive, each } from './support/build-archive.ts';
import { sha256 } from './support/handmade.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();
const NEVER = new AbortController().signal;
const PIECE = 65_536;
/** Three pieces and a part of a fourth. */
const contents = randomBytes(3 * PIECE + 1000);
const small = Buffer.from('a small one');
const hasAge = spawnSync('age', ['--version']).status === 0;

let identity: string;
let recipient: string;
let other: string;
let sealed: Buffer;
/** Where the payload begins, behind the header and the nonce. */
let payload: number;
let sequence = 0;

beforeAll(async () => {
  identity = await generateX25519Identity();
  recipient = await identityToRecipient(identity);
  other = await generateX25519Identity();
  await writeFile(path('contents'), contents);
  await writeFile(path('small'), small);
  sealed = await seal('contents');
  payload = sealed.indexOf('\n', sealed.indexOf('\n--- ') + 1) + 1 + 16;
});

/** A file, encrypted. */
async function seal(name: string, sealing: Partial<Sealing> = {}): Promise<Buffer> {
  const target = path(`${name}.${++sequence}.age`);
  const whole = { recipients: [recipient], disclosedDigest: null, ...sealing };
  const { sha256: digest, sizeBytes } = await sealFile(path(name), target, whole, NEVER);
  const bytes = await readFile(target);
  expect(digest).toBe(sha256(bytes));
  expect(sizeBytes).toBe(BigInt(bytes.length));
  expect((await stat(target)).mode & 0o777).toBe(0o600);
  return bytes;
}

/** What is inside, with the file coming in pieces of this size. */
async function opened(
  bytes: Uint8Array,
  keys: readonly string[] = [identity],
  size = 10_000,
): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  const count = Math.ceil(bytes.length / size);
  const source = each(Array.from({ length: count }, (_, i) => bytes.subarray(i * size, (i + 1) * size)));
  for await (const piece of unseal(source, { keys })) pieces.push(piece);
  return Buffer.concat(pieces);
}

function flipped(bytes: Uint8Array, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

describe('a sealed file', () => {
  it.each([1, 1000, PIECE, 10_000_000])('is opened to what it was, in pieces of %i bytes', async (size) => {
    const [bytes, expected] = size === 1 ? [await seal('small'), small] : [sealed, contents];
    expect((await opened(bytes, [identity], size)).equals(expected)).toBe(true);
  });

  it.each([0, PIECE - 1, PIECE, PIECE + 1])('is opened when there are %i bytes in it', async (length) => {
    const exact = randomBytes(length);
    await writeFile(path('exact'), exact);
    expect((await opened(await seal('exact'))).equals(exact)).toBe(true);
  });

  it('is opened by each of its recipients, a post-quantum one too, and by nobody else', async () => {
    const hybrid = await generateHybridIdentity();
    const recipients = [recipient, await identityToRecipient(other), await identityToRecipient(hybrid)];
    const bytes = await seal('small', { recipients });
    for (const key of [identity, other, hybrid]) expect(await opened(bytes, [key])).toEqual(small);
    const stranger = await generateX25519Identity();
    expect(await opened(bytes, [stranger, other])).toEqual(small);
    await expect(opened(bytes, [stranger])).rejects.toMatchObject({
      code: 'ARCHIVE_ENCRYPTED',
      message: expect.stringContaining('none of the keys'),
    });
  });

  it('shows nothing of what is in it, and two of one archive are not alike', async () => {
    expect(sealed.includes(contents.subarray(0, 32))).toBe(false);
    expect((await seal('contents')).subarray(payload).equals(sealed.subarray(payload))).toBe(false);
  });

  it('tells the digest of its history without a key where that is wanted, which nobody can change', async () => {
    const digest = 'ab'.repeat(32);
    const bytes = await seal('small', { disclosedDigest: digest });
    const [, told] = /^-> kilolock-state-archive\/history-digest ([0-9a-f]{64})$/m.exec(String(bytes)) ?? [];
    expect(told).toBe(digest);
    expect(String(await seal('small'))).not.toContain('history-digest');
    expect(await opened(bytes)).toEqual(small);
    const changed = Buffer.from(bytes);
    changed.write('cd', bytes.indexOf(digest));
    await expect(opened(changed)).rejects.toMatchObject({ code: 'ARCHIVE_CORRUPT' });
  });

  it('lets go of its source, whoever gives up', async () => {
    let isClosed = false;
    async function* source(bytes: Buffer) {
      isClosed = false;
      try {
        for (let at = 0; at < bytes.length; at += 1000) yield bytes.subarray(at, at + 1000);
      } finally {
        isClosed = true;
      }
    }
    for await (const _ of unseal(source(sealed), { keys: [identity] })) break;
    expect(isClosed).toBe(true);
    await expect(unseal(source(contents), { keys: [identity] }).next()).rejects.toThrow();
    expect(isClosed).toBe(true);
  });

  it('fails with what its source failed with', async () => {
    const failure = new Error('the disk is gone');
    for (const before of [0, payload + 10]) {
      async function* source() {
        yield sealed.subarray(0, before);
        throw failure;
      }
      const pieces = unseal(source(), { keys: [identity] });
      await expect(
        (async () => {
          for await (const _ of pieces);
        })(),
      ).rejects.toBe(failure);
    }
  });
});

describe('a sealed file that was changed is refused', () => {
  it('in each byte of its header', async () => {
    const bytes = await seal('small', { disclosedDigest: '0'.repeat(64) });
    const end = bytes.indexOf('\n', bytes.indexOf('\n--- ') + 1);
    for (let at = 0; at <= end; at++) {
      await expect(opened(flipped(bytes, at))).rejects.toMatchObject({
        // Whose line was changed finds none for itself.
        code: expect.stringMatching(/^ARCHIVE_(CORRUPT|ENCRYPTED|TRUNCATED)$/),
      });
    }
  });

  it.each([
    ['the first piece', () => payload + 5, 0],
    ['a piece in the middle', () => payload + 2 * (PIECE + 16) + 5, 2 * PIECE],
    ['the tag of a piece', () => payload + 2 * (PIECE + 16) - 1, PIECE],
    ['the last piece', () => sealed.length - 20, 3 * PIECE],
    ['the last byte', () => sealed.length - 1, 3 * PIECE],
    ['the nonce', () => payload - 1, 0],
  ])('in %s, and gives out what stands before', async (_, at, proven) => {
    let given = 0;
    async function open() {
      const source = each([flipped(sealed, at())]);
      for await (const piece of unseal(source, { keys: [identity] })) given += piece.length;
    }
    await expect(open()).rejects.toMatchObject({
      code: 'ARCHIVE_CORRUPT',
      message: expect.stringContaining(`behind byte ${proven} of the archive`),
    });
    expect(given).toBe(proven);
  });

  it('when pieces are exchanged, left out or doubled', async () => {
    const piece = (n: number) =>
      sealed.subarray(payload + n * (PIECE + 16), payload + (n + 1) * (PIECE + 16));
    const head = sealed.subarray(0, payload);
    for (const order of [
      [1, 0, 2, 3],
      [0, 2, 3],
      [0, 1, 1, 2, 3],
      [0, 1, 2, 3, 3],
    ]) {
      const changed = Buffer.concat([head, ...order.map(piece)]);
      await expect(opened(changed)).rejects.toMatchObject({ code: 'ARCHIVE_CORRUPT' });
    }
  });

  it('when something follows', async () => {
    await expect(opened(Buffer.concat([sealed, Buffer.alloc(100)]))).rejects.toMatchObject({
      code: 'ARCHIVE_CORRUPT',
    });
  });

  it('when it is cut: as truncated where that can be told from a change', async () => {
    for (const length of [1, 40, payload - 20, payload - 5, payload, payload + 10, payload + PIECE + 20]) {
      await expect(opened(sealed.subarray(0, length))).rejects.toMatchObject({ code: 'ARCHIVE_TRUNCATED' });
    }
    for (const length of [
      payload + 100,
      payload + PIECE + 16,
      payload + 3 * (PIECE + 16),
      sealed.length - 1,
    ]) {
      await expect(opened(sealed.subarray(0, length))).rejects.toMatchObject({
        code: 'ARCHIVE_CORRUPT',
        message: expect.stringContaining('was changed, or is cut'),
      });
    }
  });
});

test('a header without an end is not gathered', async () => {
  let read = 0;
  async function* source() {
    yield Buffer.from('age-encryption.org/v1\n-> X25519 ');
    for (;;) {
      read += 10_000;
      yield Buffer.alloc(10_000, 'x');
    }
  }
  await expect(unseal(source(), { keys: [identity] }).next()).rejects.toMatchObject({
    code: 'ARCHIVE_CORRUPT',
  });
  expect(read).toBeLessThan(200_000);
});

describe('an archive that is sealed', () => {
  it('is the archive that it was, once it is opened', async () => {
    await buildArchive(sampleHistory, path('sample.klstate'));
    const bytes = await seal('sample.klstate');
    expect((await opened(bytes)).equals(await readFile(path('sample.klstate')))).toBe(true);
  });

  it.each(['binary', 'armoured'])('is called encrypted, %s, by who reads it as it is', async (form) => {
    const armoured = '-----BEGIN AGE ENCRYPTED FILE-----\nYWdlLWVuY3J5cHRpb24ub3JnL3YxCg==\n';
    await writeFile(path('sealed.klstate'), form === 'binary' ? sealed : armoured);
    await expect(verifyArchive(path('sealed.klstate'))).rejects.toMatchObject({ code: 'ARCHIVE_ENCRYPTED' });
  });
});

describe('keys', () => {
  it('are read as age-keygen writes them', () => {
    const file = `# created: 2026-11-30T00:00:00Z\n# public key: ${recipient}\n${identity}\n\r\n${other}\n`;
    expect(readIdentities(file)).toEqual({ keys: [identity, other] });
    for (const text of ['', '# nothing\n', recipient, `${identity}\nhunter2`, identity.slice(0, -1)]) {
      expect(readIdentities(text)).toBeNull();
    }
  });

  it('are told from what is none', () => {
    expect(isRecipient(recipient)).toBe(true);
    for (const text of ['', identity, recipient.slice(0, -1), `${recipient} `, 'age1', 'x'.repeat(1e6)]) {
      expect(isRecipient(text)).toBe(false);
    }
  });
});

(hasAge ? describe : describe.skip)('with the age command', () => {
  it('a file that was sealed here is opened', async () => {
    await writeFile(path('key.txt'), `${identity}\n`);
    await chmod(path('key.txt'), 0o600);
    await seal('contents', { disclosedDigest: 'ab'.repeat(32) });
    const out = execFileSync('age', ['-d', '-i', path('key.txt'), path(`contents.${sequence}.age`)], {
      maxBuffer: 1e7,
    });
    expect(out.equals(contents)).toBe(true);
  });

  it('a file is sealed that is opened here', async () => {
    execFileSync('age', ['-r', recipient, '-o', path('theirs.age'), path('contents')]);
    expect((await opened(await readFile(path('theirs.age')))).equals(contents)).toBe(true);
  });
});
