import { clip } from './clip.ts';

const MAX_MESSAGE = 1000;

/**
 * Something that whoever asked can mend, or has to know: its `message` is written for callers and `code` is one of the
 * schema's documented codes. Where it is thrown is all that has to be done for it to be told.
 */
export abstract class CallerError extends Error {
  abstract readonly code: string;

  /** @param message cut to a thousand characters: it may name what somebody else called as he liked. */
  constructor(message: string, options?: ErrorOptions) {
    super(clip(message, MAX_MESSAGE), options);
  }
}
