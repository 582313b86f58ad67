/** Stands at the end of a text that was cut. */
const MARK = '…';

/**
 * A text for a message, a report or a line of a log, cut to at most `most` UTF-16 units: what somebody else wrote may have
 * any length. A text that was cut ends with `…`, and never in the middle of a character.
 */
export function clip(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = most - MARK.length;
  const isInsidePair = /[\ud800-\udbff]/.test(text.charAt(end - 1));
  return text.slice(0, isInsidePair ? end - 1 : end) + MARK;
}
