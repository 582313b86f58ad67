import { z } from 'zod';

/** Highest serial: one more, and Kilolock's next write would overflow a bigint (data model, trap 4). */
export const MAX_SERIAL = 2n ** 63n - 2n;

/** Text that PostgreSQL can hold: no NUL, no half of a surrogate pair. */
export const text = z
  .string()
  .refine((value) => !value.includes('\0') && value.isWellFormed(), 'has a NUL or a lone surrogate');

/** Text with something in it. */
export const name = text.refine((value) => value !== '', 'is empty');

/** A UUID as PostgreSQL prints it. */
export const uuid = z
  .string()
  .regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'is not a lower-case UUID');

/** A serial as decimal text; a bigint in code. */
export const serial = z
  .string()
  .regex(/^(?:0|[1-9][0-9]{0,18})$/, 'is not a serial in decimal digits')
  .transform(BigInt)
  .refine((value) => value <= MAX_SERIAL, 'is a serial above 2^63 - 2');

/** An instant: RFC 3339 in UTC with exactly six fractional digits, of a day the calendar has. */
export const time = z.string().refine(isTime, 'is not a UTC time with six fractional digits');

/** A number of things. */
export const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

const TIME = /^([0-9]{4})-([0-9]{2})-([0-9]{2})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z$/;

function isTime(value: string): boolean {
  const [, year, month, day] = (TIME.exec(value) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
