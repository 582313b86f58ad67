/** Whether PostgreSQL's text can hold this: no NUL, no lone surrogate. What it cannot hold is nobody's name there. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Characters that are not seen, or that change how others are: controls, zero widths, directions, line separators. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

/**
 * Whether all of a text is seen by whoever reads it on one line. Two names that look the same must not be different, and
 * no text may write over what stands beside it: what is new on record, and what tells identities apart, has this form.
 */
export function isVisibleText(text: string): boolean {
  return !UNSEEN.test(text);
}

/** A text without the characters of `unwanted` at its end. */
export function trimEnd(text: string, unwanted: string): string {
  let end = text.length;
  while (end > 0 && unwanted.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
