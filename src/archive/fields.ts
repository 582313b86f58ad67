import { z } from 'zod';
import { MAX_INT64 } from '../base/int64.ts';
import { isStorableText } from '../base/text.ts';
import { isUtcTime } from '../base/time.ts';
import { isUuid } from '../base/uuid.ts';

/** Highest serial: one more, and Kilolock's next write would overflow a bigint (data model, trap 4). */
export const MAX_SERIAL = MAX_INT64 - 1n;

/** Text that PostgreSQL can hold: no NUL, no half of a surrogate pair. */
export const text = z.string().refine(isStorableText, 'has a NUL or a lone surrogate');

/** Text with something in it. */
export const name = text.refine((value) => value !== '', 'is empty');

/** A UUID as PostgreSQL prints it. */
export const uuid = z
  .string()
  .refine((value) => isUuid(value) && value === value.toLowerCase(), 'is not a lower-case UUID');

/** A serial as decimal text; a bigint in code. */
export const serial = z
  .string()
  .regex(/^(?:0|[1-9][0-9]{0,18})$/, 'is not a serial in decimal digits')
  .transform(BigInt)
  .refine((value) => value <= MAX_SERIAL, 'is a serial above 2^63 - 2');

/** An instant: RFC 3339 in UTC with exactly six fractional digits, of a day the calendar has. */
export const time = z.string().refine(isUtcTime, 'is not a UTC time with six fractional digits');

/** A number of things. */
export const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
