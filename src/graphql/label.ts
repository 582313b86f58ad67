/**
 * Whether a text can stand in a state's label. PostgreSQL's text holds no NUL, and fails the statement that is asked for
 * one, together with everything else that statement was to find.
 */
export function canBeInLabel(text: string): boolean {
  return !text.includes('\0');
}
