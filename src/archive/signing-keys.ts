import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';

/** A key that archives are signed with. */
export interface ArchiveSigner {
  /** See {@link VerificationKey}. */
  readonly keyId: string;
  /** The key that its signatures are checked with. */
  readonly verificationKey: VerificationKey;
  /** An Ed25519 signature: equal bytes get equal ones. */
  sign(bytes: Uint8Array): Uint8Array;
}

/** A public key that signatures are checked with. Plain data: it goes to the threads that check. */
export interface VerificationKey {
  /** SHA-256 of the key's SubjectPublicKeyInfo in DER, lower-case hex. */
  readonly keyId: string;
  /** The SubjectPublicKeyInfo in DER, in base64. */
  readonly spki: string;
}

/** Whose signatures count. */
export interface SignatureTrust {
  readonly keys: readonly VerificationKey[];
  /** Whether an archive is refused that none of them has signed. */
  readonly isRequired: boolean;
}

/** Nobody's signature is known, and none is asked for. */
export const TRUST_NOBODY: SignatureTrust = { keys: [], isRequired: false };

/** Each is tried with each signature of an archive. */
const MAX_VERIFICATION_KEYS = 32;

/**
 * Reads the key that archives are signed with: PKCS#8 in PEM, where `\n` may stand for the ends of lines.
 *
 * @returns null when it is no private Ed25519 key without a passphrase.
 */
export function readSigningKey(pem: string): ArchiveSigner | null {
  const [block, ...more] = pemBlocks(pem, 'PRIVATE KEY');
  if (block === undefined || more.length > 0) return null;
  const key = keyOf(() => createPrivateKey(block));
  if (key === null) return null;
  const verificationKey = verificationKeyOf(createPublicKey(key));
  return {
    keyId: verificationKey.keyId,
    verificationKey,
    sign: (bytes) => sign(null, bytes, key),
  };
}

/**
 * Reads the public keys that signatures are checked with: one or several in PEM, one behind the other.
 *
 * @returns null when something in it is no public Ed25519 key, or there are none, or more than 32.
 */
export function readVerificationKeys(pems: string): readonly VerificationKey[] | null {
  const blocks = pemBlocks(pems, 'PUBLIC KEY');
  if (blocks.length === 0 || blocks.length > MAX_VERIFICATION_KEYS) return null;
  const keys = blocks.map((block) => keyOf(() => createPublicKey(block)));
  return keys.every((key) => key !== null) ? keys.map(verificationKeyOf) : null;
}

/** Whether a signature over these bytes is this key's. */
export function isSignedBy({ spki }: VerificationKey, bytes: Uint8Array, signature: Uint8Array): boolean {
  const key = createPublicKey({ key: Buffer.from(spki, 'base64'), format: 'der', type: 'spki' });
  return verify(null, bytes, key, signature);
}

/** The blocks of this label of a text in PEM (RFC 7468); none when there is anything else in it. */
function pemBlocks(text: string, label: string): readonly string[] {
  const [begin, end] = [`-----BEGIN ${label}-----`, `-----END ${label}-----`];
  const [before = '', ...parts] = text.replaceAll('\\n', '\n').split(begin);
  const blocks = parts.map((part) => part.trimEnd());
  const isWhole = (block: string) =>
    block.endsWith(end) && /^[A-Za-z0-9+/=\s]+$/.test(block.slice(0, -end.length));
  return before.trim() === '' && blocks.every(isWhole) ? blocks.map((block) => begin + block) : [];
}

function keyOf(read: () => KeyObject): KeyObject | null {
  try {
    const key = read();
    return key.asymmetricKeyType === 'ed25519' ? key : null;
  } catch {
    // What OpenSSL says of a key that it cannot read is nothing that helps, and the key is not to be told.
    return null;
  }
}

function verificationKeyOf(key: KeyObject): VerificationKey {
  const spki = key.export({ format: 'der', type: 'spki' });
  return { keyId: createHash('sha256').update(spki).digest('hex'), spki: spki.toString('base64') };
}
