const UTC_TIME = /^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$/;

/**
 * Whether a text is an instant as this project writes them: RFC 3339 in UTC with exactly six fractional digits
 * (`2026-03-02T10:00:00.000118Z`), of the years 1 to 9999 and a day that the calendar has.
 */
export function isUtcTime(text: string): boolean {
  if (!UTC_TIME.test(text)) return false;
  const date = new Date(text);
  // Of a day that the calendar has not, JavaScript makes another, or none.
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text.slice(0, 19));
}

/** The text of an instant that JavaScript measured, to the millisecond. Times of the database never go through a Date. */
export function utcTimeOf(date: Date): string {
  return date.toISOString().replace('Z', '000Z');
}
