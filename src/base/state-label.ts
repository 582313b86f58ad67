import { isVisibleText } from './text.ts';

const MAX_LABEL_BYTES = 1024;

/**
 * What keeps a text from being the name of a new state, as the end of a sentence; null when nothing does.
 *
 * Kilolock itself accepts any name (data model 1.13); what is told here could not be addressed afterwards: nothing at all,
 * white space at an end (its HTTP interface trims it), characters that are not seen, and an empty, `.` or `..` segment.
 */
export function stateLabelFault(label: string): string | null {
  if (label === '') return 'is empty';
  if (Buffer.byteLength(label) > MAX_LABEL_BYTES) return `is longer than ${MAX_LABEL_BYTES} bytes`;
  if (label.trim() !== label) return 'begins or ends with white space';
  if (!isVisibleText(label))
    return 'holds a character that is not seen, such as a control or a zero width space';
  if (label.split('/').some((segment) => ['', '.', '..'].includes(segment))) {
    return 'has an empty, "." or ".." segment';
  }
  return null;
}
