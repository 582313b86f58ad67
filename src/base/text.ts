/** Whether PostgreSQL's text can hold this: no NUL, no lone surrogate. What it cannot hold is nobody's name there. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}
