import { z } from 'zod';
import { isVisibleText } from '../base/text.ts';
import type { Principal } from './principal.ts';

/** A token's claims cannot be understood. The message names the claim, never its value. */
export class ClaimsError extends Error {
  override readonly name = 'ClaimsError';
}

const MAX_TEXT_LENGTH = 256;

const plainText = z
  .string()
  .refine(
    (text) => text !== '' && text.length <= MAX_TEXT_LENGTH && isVisibleText(text),
    `expected 1 to ${MAX_TEXT_LENGTH} characters that are all seen`,
  );

// Names of people are spelt with joiners in several scripts; nothing is decided by a name.
const personName = z
  .string()
  .refine(
    (text) => plainText.safeParse(text.replace(/[\u200c\u200d]/g, '')).success,
    `expected 1 to ${MAX_TEXT_LENGTH} characters that are all seen`,
  );

// Kilolock's own credentials have subjects of this kind: an issuer's user must not become one by its name.
const subject = plainText.refine(
  (text) => !text.startsWith('kilolock:'),
  'expected no "kilolock:" before it',
);

// Both become path segments of a state's stored name; a slash in one would reach into another workspace.
const publicId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,128}$/, 'expected a public id: letters, digits, "_" and "-"');

const scopeToken = z
  .string()
  .regex(/^[\x21\x23-\x5B\x5D-\x7E]+$/, 'expected scope tokens (RFC 6749, section 3.3)');

const statePattern = z
  .string()
  .regex(/^(?:[^*]+\*?|\*)$/su, 'expected labels, or prefixes that end in the only "*" they hold');

/** Words are parted by the space alone (RFC 6749, section 3.3): what looks like one is part of a word. */
function wordsOf<Item extends z.ZodType<string, string>>(item: Item) {
  const words = z.string().transform((text) => text.split(' ').filter((word) => word !== ''));
  return z.union([words, z.array(z.string())]).pipe(z.array(item));
}

const claimsSchema = z
  .object({
    sub: subject,
    name: personName.optional(),
    email: plainText.optional(),
    scope: wordsOf(scopeToken).optional(),
    workspace: publicId.optional(),
    environment: publicId.optional(),
    states: wordsOf(statePattern).optional(),
    exp: z.number().optional(),
  })
  .refine((claims) => (claims.workspace === undefined) === (claims.environment === undefined), {
    message: 'expected both or neither',
    path: ['workspace', 'environment'],
  });

/**
 * Reads a principal from the claims of a token whose signature, issuer, audience and times were verified before.
 * A claim that is there but cannot be understood is an error, never ignored: ignoring a malformed restriction
 * would widen what the token permits.
 *
 * - `sub`: required.
 * - `scope`: words in a string (RFC 9068, section 2.2.3) or an array; absent means none. They hold in the token's own
 *   environment, or everywhere when `state.support` is among them.
 * - `workspace`, `environment`: both or neither; neither means the self-hosted environment.
 * - `states`: labels, or prefixes that end in `*`, as words in a string or an array (labels that hold spaces need
 *   the array). Absent or `*` means every state, empty means none.
 *
 * @throws ClaimsError naming every claim that cannot be understood.
 */
export function principalFromClaims(claims: unknown): Principal {
  const parsed = claimsSchema.safeParse(claims);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    throw new ClaimsError(problems.join('; '));
  }
  const { sub, name, email, scope, workspace = null, environment = null, states, exp } = parsed.data;
  const scopes = new Set(scope);
  return {
    subject: sub,
    actor: name ?? email ?? sub,
    scopes,
    workspace,
    environment,
    statePatterns: states === undefined || states.includes('*') ? null : states,
    ...(exp !== undefined && { expiresAt: exp }),
    ...(scopes.has('state.support') && { grants: [{ scopes, reach: { kind: 'global' } }] }),
  };
}
