/** Whether PostgreSQL's text can hold this: no NUL, no lone surrogate. What it cannot hold is nobody's name there. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Whether a text is a uuid in the form PostgreSQL gives out, in whichever case. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}
