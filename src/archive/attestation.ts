import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { clip } from '../base/clip.ts';
import { trimEnd } from '../base/text.ts';
import { ArchiveError, quoted } from './errors.ts';
import { name, serial, sha256, text, time, uuid } from './fields.ts';
import { ARCHIVE_FORMAT, type ArchiveLimits, MAX_SIGNATURES, MEMBER } from './format.ts';
import { documentMember } from './metadata.ts';
import type { ArchivedState, ExportRecord } from './model.ts';
import { record, type ValueOf } from './record-form.ts';
import { type ArchiveSigner, isSignedBy, type SignatureTrust } from './signing-keys.ts';

/** What an attestation is about. */
export interface AttestedArchive {
  /** The bytes of `SHA256SUMS`, which hold the digest of every other member. */
  readonly sums: Uint8Array;
  readonly historyDigest: string;
  readonly state: Pick<ArchivedState, 'label' | 'lineage' | 'currentSerial'>;
  readonly exportRecord: Pick<ExportRecord, 'exportedAt' | 'exportedBy'>;
}

/** What an attestation is worth that is not refused. */
export interface ArchiveSignature {
  /** Whether a key has signed that is trusted. */
  readonly verified: boolean;
  /** The keys that have signed: of those trusted the ones whose signature was checked; otherwise those the attestation names. */
  readonly keyIds: readonly string[];
}

// The envelope of DSSE 1.0; fields it does not name are left alone.
const base64 = z.string().regex(/^[A-Za-z0-9+/_-]+={0,2}$/, 'is not base64');
const ENVELOPE = documentMember(
  MEMBER.attestation,
  record({
    payloadType: name,
    payload: base64,
    signatures: z
      .array(z.object({ keyid: text.optional(), sig: base64 }))
      .min(1, 'has no signature')
      .max(MAX_SIGNATURES, `has more than ${MAX_SIGNATURES} signatures`),
  }),
);

// The statement of in-toto 1.0 that the envelope carries.
const STATEMENT_TYPE = 'https://in-toto.io/Statement/v1';
const PREDICATE_TYPE = 'urn:kilolock-state-archive:export:v1';
const STATEMENT_KIND = documentMember(MEMBER.attestation, record({ predicateType: z.string() }));
const statementForm = record({
  _type: z.literal(STATEMENT_TYPE),
  subject: z.tuple([z.object({ name: z.literal(MEMBER.sums), digest: z.object({ sha256 }) })]),
  predicateType: z.literal(PREDICATE_TYPE),
  predicate: record({
    archive_format: z.literal(ARCHIVE_FORMAT),
    history_digest: sha256,
    state: record({ label: name, lineage: uuid.nullable(), current_serial: serial }),
    exported_at: time,
    exported_by: text,
  }),
});
const STATEMENT = documentMember(MEMBER.attestation, statementForm);

/** The media type of an in-toto statement in JSON. */
const STATEMENT_MEDIA_TYPE = 'application/vnd.in-toto+json';
/** The longest name of a key that is told, whatever an attestation holds. */
const MAX_KEY_ID = 120;

/**
 * The bytes of `attestation.dsse.json`. Equal contents and one key make equal bytes: an Ed25519 signature has no chance in it,
 * and the time is that of the export.
 */
export function encodeAttestation(archive: AttestedArchive, signer: ArchiveSigner): Uint8Array {
  const payload = Buffer.from(`${JSON.stringify(statementForm.encode(statementOf(archive)))}\n`);
  return ENVELOPE.encode({
    payloadType: STATEMENT_MEDIA_TYPE,
    payload: payload.toString('base64'),
    signatures: [
      { keyid: signer.keyId, sig: Buffer.from(signer.sign(signedBytes(payload))).toString('base64') },
    ],
  });
}

/**
 * Checks an attestation: that it says of the archive what the archive is, and that each of its signatures by a trusted key is
 * right. Who else has signed cannot be told, and is not refused for it.
 *
 * @param bytes of the member; null: there is none.
 * @returns null when there is none.
 * @throws ArchiveError SIGNATURE_INVALID when it is about another archive, or a signature is wrong; SIGNATURE_REQUIRED when
 *   one of a trusted key is required and there is none; ARCHIVE_CORRUPT, ARCHIVE_UNSAFE or ARCHIVE_INCONSISTENT when it
 *   is no envelope.
 */
export function checkAttestation(
  bytes: Uint8Array | null,
  archive: AttestedArchive,
  trust: SignatureTrust,
  limits: ArchiveLimits,
): ArchiveSignature | null {
  const signature = bytes && readAttestation(bytes, archive, trust, limits);
  if (!trust.isRequired || signature?.verified) return signature;
  const how =
    signature === null
      ? 'is not signed'
      : `is signed by none of the keys that are trusted, but by ${signature.keyIds.map(quoted).join(', ')}`;
  throw new ArchiveError('SIGNATURE_REQUIRED', `the archive ${how}`, MEMBER.attestation);
}

function readAttestation(
  bytes: Uint8Array,
  archive: AttestedArchive,
  { keys }: SignatureTrust,
  limits: ArchiveLimits,
): ArchiveSignature {
  const { payloadType, payload: encoded, signatures } = ENVELOPE.decode(bytes, limits).value;
  const unverified = { verified: false, keyIds: [...new Set(signatures.map(nameOf))] };
  if (payloadType !== STATEMENT_MEDIA_TYPE) return unverified;
  const payload = decodedBase64(encoded);
  if (payload === null) throw invalid('its statement is none');
  try {
    // What somebody else states is not ours to judge.
    if (STATEMENT_KIND.decode(payload, limits).value.predicateType !== PREDICATE_TYPE) return unverified;
    if (!isDeepStrictEqual(STATEMENT.decode(payload, limits).value, statementOf(archive))) {
      throw invalid('its statement is about another archive');
    }
  } catch (error) {
    if (!(error instanceof ArchiveError) || error.code === 'SIGNATURE_INVALID') throw error;
    throw invalid('its statement is none');
  }
  const signed = signedBytes(payload);
  const signers = new Set<string>();
  for (const signature of signatures) {
    const { keyid, sig } = signature;
    const signatureBytes = decodedBase64(sig);
    if (signatureBytes === null) throw invalid(`the signature of ${nameOf(signature)} is none`);
    const signer = keys.find((key) => isSignedBy(key, signed, signatureBytes));
    if (signer === undefined && keys.some((key) => key.keyId === keyid)) {
      throw invalid(`the signature of ${nameOf(signature)} is wrong`);
    }
    if (signer !== undefined && keyid !== undefined && keyid !== signer.keyId) {
      throw invalid(`a signature of ${signer.keyId} is called one of ${nameOf(signature)}`);
    }
    if (signer !== undefined) signers.add(signer.keyId);
  }
  return signers.size === 0 ? unverified : { verified: true, keyIds: [...signers] };
}

function statementOf({
  sums,
  historyDigest,
  state,
  exportRecord,
}: AttestedArchive): ValueOf<typeof statementForm> {
  const { label, lineage, currentSerial } = state;
  const { exportedAt, exportedBy } = exportRecord;
  return {
    Type: STATEMENT_TYPE,
    subject: [{ name: MEMBER.sums, digest: { sha256: createHash('sha256').update(sums).digest('hex') } }],
    predicateType: PREDICATE_TYPE,
    predicate: {
      archiveFormat: ARCHIVE_FORMAT,
      historyDigest,
      state: { label, lineage, currentSerial },
      exportedAt,
      exportedBy,
    },
  };
}

/** What is signed of a payload: the pre-authentication encoding of DSSE 1.0, whose lengths let no text pass for another. */
function signedBytes(payload: Uint8Array): Uint8Array {
  const head = `DSSEv1 ${STATEMENT_MEDIA_TYPE.length} ${STATEMENT_MEDIA_TYPE} ${payload.length} `;
  return Buffer.concat([Buffer.from(head), payload]);
}

/** Bytes written in either alphabet of base64; null where a character or a bit is not as it would be written. */
function decodedBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, 'base64');
  const bare = trimEnd(text, '=');
  const alphabets = [trimEnd(bytes.toString('base64'), '='), bytes.toString('base64url')];
  return alphabets.includes(bare) ? bytes : null;
}

function nameOf({ keyid }: { readonly keyid?: string | undefined }): string {
  return keyid === undefined ? 'a key without a name' : clip(keyid, MAX_KEY_ID);
}

function invalid(what: string): ArchiveError {
  const message = `the attestation is not this archive's, or was changed: ${what}`;
  return new ArchiveError('SIGNATURE_INVALID', message, MEMBER.attestation);
}
