/** Whether a text is a uuid in the form PostgreSQL gives out, in whichever case. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** A uuid as PostgreSQL gives it out, of one that it accepts: in braces, in capitals, with other hyphens. */
export function canonicalUuid(text: string): string {
  const digits = text.toLowerCase().replace(/[{}-]/g, '');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
