import { z } from 'zod';
import { MAX_INT64 } from '../base/int64.ts';
import { isStorableText } from '../base/text.ts';
import { isUtcTime } from '../base/time.ts';
import { isUuid } from '../base/uuid.ts';
import { payloadFault } from './event-payload.ts';
import { MAX_EVENT_KIND_BYTES, MAX_TEXT_BYTES } from './format.ts';

/** Highest serial: one more, and Kilolock's next write would overflow a bigint (data model, trap 4). */
export const MAX_SERIAL = MAX_INT64 - 1n;

/** Text that PostgreSQL can hold: no NUL, no half of a surrogate pair. */
const storableText = z.string().refine(isStorableText, 'has a NUL or a lone surrogate');

/** Text of at most {@link MAX_TEXT_BYTES}. Control characters are kept: people and clients of Kilolock may write them. */
export const text = storableText.refine(
  (value) => isWithin(value, MAX_TEXT_BYTES),
  `has more than ${MAX_TEXT_BYTES} bytes`,
);

/** Text with something in it. */
export const name = text.refine((value) => value !== '', 'is empty');

/** What an event is of: a word of a program, never a text that people write. */
export const eventKind = name
  .refine((value) => isWithin(value, MAX_EVENT_KIND_BYTES), `has more than ${MAX_EVENT_KIND_BYTES} bytes`)
  .refine((value) => !/\p{Cc}/u.test(value), 'has a control character');

/** JSON text by the rules of {@link payloadFault}. */
export const payload = storableText.superRefine((value, context) => {
  const fault = payloadFault(value);
  if (fault !== null) context.addIssue({ code: 'custom', message: fault });
});

/** A SHA-256. */
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not 64 lower-case hexadecimal digits');

/** A UUID as PostgreSQL prints it. */
export const uuid = z
  .string()
  .refine((value) => isUuid(value) && value === value.toLowerCase(), 'is not a lower-case UUID');

/** A serial as decimal text; a bigint in code. */
export const serial = z.codec(
  z.string().regex(/^(?:0|[1-9][0-9]{0,18})$/, 'is not a serial in decimal digits'),
  z.bigint().max(MAX_SERIAL, 'is a serial above 2^63 - 2'),
  { decode: BigInt, encode: String },
);

/**
 * An instant: RFC 3339 in UTC with exactly six fractional digits, of a day the calendar has in the years 0001 to 9999. No leap
 * seconds: PostgreSQL has none.
 */
export const time = z.string().refine(isUtcTime, 'is not a UTC time with six fractional digits');

/** A number of things. */
export const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

function isWithin(value: string, bytes: number): boolean {
  // A UTF-16 unit has at most three bytes.
  return value.length * 3 <= bytes || Buffer.byteLength(value) <= bytes;
}
