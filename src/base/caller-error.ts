/**
 * Something that whoever asked can mend, or has to know: its `message` is written for callers and `code` is one of the
 * schema's documented codes. Where it is thrown is all that has to be done for it to be told.
 */
export abstract class CallerError extends Error {
  abstract readonly code: string;
}
