const UTC_TIME = /^([0-9]{4})-([0-9]{2})-([0-9]{2})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z$/;

/**
 * Whether a text is an instant as this project writes them: RFC 3339 in UTC with exactly six fractional digits
 * (`2026-03-02T10:00:00.000118Z`), of the years 1 to 9999 and a day that the calendar has.
 */
export function isUtcTime(text: string): boolean {
  const [, year, month, day] = (UTC_TIME.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return false;
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
}

/** The text of an instant that JavaScript measured, to the millisecond. Times of the database never go through a Date. */
export function utcTimeOf(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
