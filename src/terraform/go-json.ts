/**
 * A string, or a list of strings, as Go's `encoding/json` writes it: compact, with `<`, `>`, `&`, U+2028 and
 * U+2029 escaped. A list in this form is the text of `dependencies_raw` that is hashed (data model 3.5).
 */
export function goJson(value: string | readonly string[]): string {
  // JSON.stringify spells everything else as Go does since 1.22.
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
