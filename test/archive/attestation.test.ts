import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { encodeAttestation } from '../../src/archive/attestation.ts';
import { MAX_ATTESTATION_BYTES, MEMBER } from '../../src/archive/format.ts';
import { type VerifiedArchive, verifyArchive } from '../../src/archive/reader.ts';
import {
  type ArchiveSigner,
  readSigningKey,
  readVerificationKeys,
  type SignatureTrust,
  TRUST_NOBODY,
} from '../../src/archive/signing-keys.ts';
import { buildArchive } from './support/build-archive.ts';
import {
  type HandmadeMember,
  sha256,
  summed,
  takeApart,
  tarred,
  verdict,
  withJson,
  withMember,
  zstd,
} from './support/handmade.ts';
import { sampleHistory } from './support/sample-history.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const path = temporaryDirectory();
const signer = newSigner();
const other = newSigner();
let archive: Buffer;
let members: HandmadeMember[];
let written: VerifiedArchive;

beforeAll(async () => {
  await buildArchive(sampleHistory, path('signed.klstate'), { signer });
  archive = await readFile(path('signed.klstate'));
  members = await takeApart(archive);
  written = await verifyArchive(path('signed.klstate'));
});

function newSigner(): ArchiveSigner {
  return signerOf(generateKeyPairSync('ed25519').privateKey);
}

function signerOf(key: KeyObject): ArchiveSigner {
  const signer = readSigningKey(key.export({ format: 'pem', type: 'pkcs8' }).toString());
  if (signer === null) throw new Error('The key was not read.');
  return signer;
}

function trusting(...signers: ArchiveSigner[]): SignatureTrust {
  return { keys: signers.map(({ verificationKey }) => verificationKey), isRequired: false };
}

function requiring(...keys: ArchiveSigner[]): SignatureTrust {
  return { ...trusting(...keys), isRequired: true };
}

async function read(changed: readonly HandmadeMember[], trust: SignatureTrust) {
  return verdict(zstd(await tarred(changed)), {}, undefined, { trust });
}

/** The sample with another attestation, and nothing else changed. */
function attested(attestation: Uint8Array | string): HandmadeMember[] {
  return withMember(members, MEMBER.attestation, () => Buffer.from(attestation));
}

function envelope(): { payload: string; payloadType: string; signatures: { keyid: string; sig: string }[] } {
  return JSON.parse(String(members.find(({ name }) => name === MEMBER.attestation)?.data));
}

function statement(): Record<string, unknown> {
  return JSON.parse(Buffer.from(envelope().payload, 'base64').toString());
}

/** What the sample's attestation is about, or something a little else, signed by whom you like. */
function signedAbout(changes: Partial<Parameters<typeof encodeAttestation>[0]>, by = signer): Uint8Array {
  const { manifest, exportRecord, historyDigest } = written;
  const sums = members.find(({ name }) => name === MEMBER.sums)?.data ?? Buffer.alloc(0);
  return encodeAttestation({ sums, historyDigest, state: manifest.state, exportRecord, ...changes }, by);
}

/** Signatures of both keys over the sample. */
function signedByBoth() {
  const [mine, theirs] = [signedAbout({}), signedAbout({}, other)].map((bytes) => JSON.parse(String(bytes)));
  return { ...mine, signatures: [...theirs.signatures, ...mine.signatures] };
}

describe('a signed archive', () => {
  it('has an attestation behind its sums that names them, the history, the state and the exporter', () => {
    expect(members.at(-1)?.name).toBe('attestation.dsse.json');
    expect(members.at(-2)?.name).toBe('SHA256SUMS');
    expect(envelope().payloadType).toBe('application/vnd.in-toto+json');
    expect(statement()).toEqual({
      _type: 'https://in-toto.io/Statement/v1',
      subject: [{ name: 'SHA256SUMS', digest: { sha256: sha256(members.at(-2)?.data ?? Buffer.alloc(0)) } }],
      predicateType: 'urn:kilolock-state-archive:export:v1',
      predicate: {
        archive_format: 'kilolock-state-archive/v1',
        history_digest: written.historyDigest,
        state: { label: 'team/app', lineage: '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10', current_serial: '10' },
        exported_at: '2026-04-01T08:00:00.000000Z',
        exported_by: 'support@example.org',
      },
    });
  });

  it('is the same file when it is written again, and the same archive without the signature', async () => {
    await buildArchive(sampleHistory, path('again.klstate'), { signer });
    expect(await readFile(path('again.klstate'))).toEqual(archive);
    await buildArchive(sampleHistory, path('plain.klstate'));
    expect(await takeApart(await readFile(path('plain.klstate')))).toEqual(members.slice(0, -1));
  });

  it('is verified by the key that signed it, which it names by the digest of its SPKI', async () => {
    const spki = Buffer.from(signer.verificationKey.spki, 'base64');
    expect(signer.keyId).toBe(sha256(spki));
    const { signature, warnings } = await read(members, requiring(other, signer));
    expect(signature).toEqual({ verified: true, keyIds: [signer.keyId] });
    expect(warnings).toEqual([]);
  });

  it.each([
    ['nobody', TRUST_NOBODY],
    ['others', trusting(other)],
  ])('is read with a warning by who trusts %s', async (_, trust) => {
    const { signature, warnings } = await read(members, trust);
    expect(signature).toEqual({ verified: false, keyIds: [signer.keyId] });
    expect(warnings).toEqual([
      expect.objectContaining({
        code: 'ATTESTATION_NOT_VERIFIED',
        message: expect.stringContaining(signer.keyId),
      }),
    ]);
  });

  it('is read by who trusts the old key or the new one while keys are changed', async () => {
    const both = attested(JSON.stringify(signedByBoth()));
    for (const trust of [requiring(signer), requiring(other)]) {
      expect((await read(both, trust)).signature).toEqual({
        verified: true,
        keyIds: [trust.keys[0]?.keyId],
      });
    }
    const { signature } = await read(both, requiring(signer, other));
    expect(signature?.keyIds).toEqual([other.keyId, signer.keyId]);
  });

  it('is verified too where its signature names no key, or is in the other alphabet of base64', async () => {
    const [signature] = envelope().signatures;
    const sig = Buffer.from(signature?.sig ?? '', 'base64').toString('base64url');
    const unnamed = JSON.stringify({ ...envelope(), signatures: [{ sig }] });
    expect((await read(attested(unnamed), requiring(signer))).signature?.verified).toBe(true);
    expect((await read(attested(unnamed), trusting(other))).signature?.verified).toBe(false);
  });

  it('may have an attestation of another kind, which proves nothing', async () => {
    const foreign = [
      { ...envelope(), payloadType: 'text/plain' },
      {
        ...envelope(),
        payload: encoded({ ...statement(), predicateType: 'https://slsa.dev/provenance/v1' }),
      },
    ];
    for (const each of foreign) {
      const changed = attested(JSON.stringify(each));
      expect((await read(changed, trusting(signer))).signature?.verified).toBe(false);
      await expect(read(changed, requiring(signer))).rejects.toMatchObject({ code: 'SIGNATURE_REQUIRED' });
    }
  });
});

describe('where a signature is required', () => {
  it.each<[string, () => HandmadeMember[], RegExp]>([
    ['is not signed', () => members.slice(0, -1), /is not signed/],
    [
      'is signed by others alone',
      () => attested(signedAbout({}, other)),
      /none of the keys that are trusted/,
    ],
  ])('an archive is refused that %s', async (_, changed, message) => {
    await expect(read(changed(), requiring(signer))).rejects.toMatchObject({
      code: 'SIGNATURE_REQUIRED',
      member: 'attestation.dsse.json',
      message: expect.stringMatching(message),
    });
  });
});

describe('an attestation is refused, whoever is trusted and whether or not one is required, when', () => {
  const everybody = [TRUST_NOBODY, trusting(other), trusting(signer), requiring(signer)];

  it.each<[string, () => Uint8Array | string]>([
    ['it is about other sums', () => signedAbout({ sums: Buffer.from('other') })],
    ['it is about another history', () => signedAbout({ historyDigest: '0'.repeat(64) })],
    [
      'it is about another state',
      () => signedAbout({ state: { ...written.manifest.state, label: 'team/other' } }),
    ],
    [
      'it is about another lineage',
      () => signedAbout({ state: { ...written.manifest.state, lineage: null } }),
    ],
    [
      'it is about another serial',
      () => signedAbout({ state: { ...written.manifest.state, currentSerial: 2n } }),
    ],
    [
      'it names another exporter',
      () => signedAbout({ exportRecord: { ...written.exportRecord, exportedBy: 'somebody' } }),
    ],
    [
      'it names another time',
      () =>
        signedAbout({ exportRecord: { ...written.exportRecord, exportedAt: '2027-01-01T00:00:00.000000Z' } }),
    ],
    ['its payload is no statement', () => JSON.stringify({ ...envelope(), payload: encoded({}) })],
    [
      'its payload is no JSON',
      () => JSON.stringify({ ...envelope(), payload: Buffer.from('nothing').toString('base64') }),
    ],
    [
      'its payload has a bit that base64 does not',
      () => JSON.stringify({ ...envelope(), payload: envelope().payload.replace(/.(=*)$/, '/$1') }),
    ],
    [
      'its payload says something twice',
      () =>
        JSON.stringify({
          ...envelope(),
          payload: Buffer.from(
            JSON.stringify(statement()).replace('{"_type"', '{"predicate":{},"_type"'),
          ).toString('base64'),
        }),
    ],
  ])('%s', async (_, attestation) => {
    for (const trust of everybody) {
      await expect(read(attested(attestation()), trust)).rejects.toMatchObject({
        code: 'SIGNATURE_INVALID',
        member: 'attestation.dsse.json',
      });
    }
  });
});

describe('a signature of a trusted key is refused when', () => {
  it.each<[string, () => unknown]>([
    ['it is wrong', () => withSignature((sig) => flipped(sig))],
    ['it is cut', () => withSignature((sig) => sig.subarray(0, 40))],
    ['it is of another key', () => ({ ...envelope(), signatures: [{ ...theirs(), keyid: signer.keyId }] })],
    [
      'it is called the one of another key',
      () => ({ ...envelope(), signatures: [{ ...envelope().signatures[0], keyid: other.keyId }] }),
    ],
    [
      'it is wrong beside a right one',
      () => {
        const both = signedByBoth();
        return { ...both, signatures: [{ ...both.signatures[0], keyid: signer.keyId }, both.signatures[1]] };
      },
    ],
    [
      'the statement is spelled otherwise',
      () => ({
        ...envelope(),
        payload: Buffer.from(JSON.stringify(statement(), null, 1)).toString('base64'),
      }),
    ],
  ])('%s', async (_, attestation) => {
    for (const trust of [trusting(signer), requiring(other, signer)]) {
      await expect(read(attested(JSON.stringify(attestation())), trust)).rejects.toMatchObject({
        code: 'SIGNATURE_INVALID',
      });
    }
  });

  function withSignature(change: (sig: Buffer) => Uint8Array) {
    const [signature] = envelope().signatures;
    const sig = Buffer.from(change(Buffer.from(signature?.sig ?? '', 'base64'))).toString('base64');
    return { ...envelope(), signatures: [{ ...signature, sig }] };
  }

  function theirs() {
    return JSON.parse(String(signedAbout({}, other))).signatures[0];
  }
});

describe('a signed archive is refused when a member was changed', () => {
  it('with the sums left alone: it is damaged', async () => {
    for (const { name } of members) {
      if (name === MEMBER.attestation || name === MEMBER.sums) continue;
      const changed = withMember(members, name, (data) =>
        name.startsWith('versions/') ? String(data).replace('{', '[') : `${data} `,
      );
      await expect(read(changed, requiring(signer))).rejects.toMatchObject({
        code: expect.stringMatching(/^ARCHIVE_(CORRUPT|INCONSISTENT)$/),
      });
    }
  });

  it('with sums that agree again: they are not those that were signed', async () => {
    const changes = [
      withJson(members, MEMBER.manifest, { 'versions.0.created_by': 'somebody' }),
      withJson(members, MEMBER.tags, { 'tags.0.description': 'another' }),
      withMember(members, MEMBER.events, (data) => String(data).replace('state_write', 'state_wrote')),
      withMember(members, MEMBER.resources, (data) =>
        String(data).replace('"schema_version":3', '"schema_version":4'),
      ),
      withJson(members, MEMBER.exportRecord, { exported_by: 'somebody' }),
      withMember(members, 'versions/2.tfstate.json', (data) => String(data).replace('1.10', '1.11')),
    ];
    for (const changed of changes) {
      expect(changed).not.toEqual(members);
      await expect(read(summed(changed), requiring(signer))).rejects.toMatchObject({
        code: 'SIGNATURE_INVALID',
        message: expect.stringContaining('about another archive'),
      });
    }
  });

  it('with the sums of another archive', async () => {
    const changed = withMember(members, MEMBER.sums, (data) =>
      String(data).replace(/^./, (c) => (c === 'a' ? 'b' : 'a')),
    );
    await expect(read(changed, requiring(signer))).rejects.toMatchObject({ code: 'ARCHIVE_CORRUPT' });
  });
});

describe('an attestation has its bounds', () => {
  it('in bytes and in signatures', async () => {
    const [signature] = envelope().signatures;
    const many = { ...envelope(), signatures: Array.from({ length: 17 }, () => signature) };
    await expect(read(attested(JSON.stringify(many)), trusting(signer))).rejects.toMatchObject({
      code: 'ARCHIVE_INCONSISTENT',
      message: expect.stringContaining('more than 16 signatures'),
    });
    const large = `${JSON.stringify(envelope())}${' '.repeat(MAX_ATTESTATION_BYTES)}`;
    await expect(read(attested(large), trusting(signer))).rejects.toMatchObject({
      code: 'ARCHIVE_TOO_LARGE',
    });
  });

  it('when it is written: a name that does not fit is told, and nothing is left', async () => {
    const label = 'x'.repeat(MAX_ATTESTATION_BYTES);
    const long = { ...sampleHistory, state: { ...sampleHistory.state, label } };
    await expect(buildArchive(long, path('long.klstate'), { signer })).rejects.toMatchObject({
      code: 'ARCHIVE_TOO_LARGE',
      member: 'attestation.dsse.json',
    });
    await expect(readFile(path('long.klstate'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('in the name of a key that a message tells', async () => {
    const named = { ...envelope(), signatures: [{ ...envelope().signatures[0], keyid: 'k'.repeat(5000) }] };
    const { warnings } = await read(attested(JSON.stringify(named)), trusting(other));
    expect(warnings[0]?.message.length).toBeLessThan(300);
  });
});

describe('keys', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const secret = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  const known = publicKey.export({ format: 'pem', type: 'spki' }).toString();
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });

  it('are read in PEM, with ends of lines as a file of variables has them', () => {
    const keyId = readSigningKey(secret)?.keyId;
    expect(keyId).toMatch(/^[0-9a-f]{64}$/);
    expect(readSigningKey(secret.replaceAll('\n', '\\n'))?.keyId).toBe(keyId);
    expect(readSigningKey(secret.replaceAll('\n', '\r\n'))?.keyId).toBe(keyId);
    expect(readVerificationKeys(known.repeat(2))?.map((key) => key.keyId)).toEqual([keyId, keyId]);
  });

  it.each([
    ['a public key', known],
    ['two keys', secret.repeat(2)],
    ['a key of another kind', rsa.privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()],
    [
      'a key with a passphrase',
      privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' }).toString(),
    ],
    ['a key that was cut', secret.replace('MC4', 'MC')],
    ['a key with something beside it', `${secret}\nhunter2`],
    ['no key', 'hunter2'],
  ])('%s is none to sign with', (_, pem) => {
    expect(readSigningKey(pem)).toBeNull();
  });

  it.each([
    ['a private key', secret],
    ['a private key among them', known + secret],
    ['a key of another kind', rsa.publicKey.export({ format: 'pem', type: 'spki' }).toString()],
    ['33 keys', known.repeat(33)],
    ['no key', 'hunter2'],
  ])('%s is none to check signatures with', (_, pem) => {
    expect(readVerificationKeys(pem)).toBeNull();
  });
});

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[3] = (copy[3] ?? 0) ^ 1;
  return copy;
}
