import { decodeProtectedHeader } from 'jose';
import { trimEnd } from '../base/text.ts';

/** What an `Authorization` header holds. It is a secret. */
export type AuthorizationHeader =
  | { readonly scheme: 'bearer'; readonly secret: Buffer }
  | {
      readonly scheme: 'basic';
      /** What stands before the first colon: the workspace the secret is said to belong to; '' when none is. */
      readonly username: string;
      readonly secret: Buffer;
    };

/**
 * Reads an `Authorization` header: `Bearer` with a secret of any form, since Kilolock's tokens have none that is
 * prescribed (data model 7.1), or `Basic` (RFC 7617). The schemes are case-insensitive (RFC 9110, section 11.1).
 *
 * @param value as Node gives it out, one character for each byte that was sent.
 * @returns null when it is neither, or the secret is empty.
 */
export function parseAuthorization(value: string): AuthorizationHeader | null {
  // Beyond these no byte was sent; taking the low half of such a character would make two secrets equal.
  if (!/^[\x20-\xFF]*$/.test(value)) return null;
  const [before = '', scheme = ''] = /^(bearer|basic) +/i.exec(value) ?? [];
  const credentials = trimEnd(value.slice(before.length), ' ');
  if (scheme === '' || credentials === '') return null;
  if (scheme.toLowerCase() === 'bearer') {
    return { scheme: 'bearer', secret: Buffer.from(credentials, 'latin1') };
  }
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(credentials)) return null;
  const userPass = Buffer.from(credentials, 'base64');
  const colon = userPass.indexOf(':');
  const secret = userPass.subarray(colon + 1);
  if (colon < 0 || secret.length === 0) return null;
  return { scheme: 'basic', username: userPass.toString('utf8', 0, colon), secret };
}

/**
 * Whether a secret is a JWT by its form: it begins with a JOSE header (RFC 7515, section 4). It is a property of the
 * text alone, so that a credential has one verifier and never a second chance with another.
 */
export function isJwtShaped(secret: Buffer): boolean {
  try {
    decodeProtectedHeader(secret.toString('latin1'));
    return true;
  } catch {
    return false;
  }
}
