import { isUtf8 } from 'node:buffer';

/** Where text that is not UTF-8 stops being so: the first bad byte, or the character before it. */
export function findInvalidUtf8(bytes: Buffer): number {
  let valid = 0;
  let invalid = bytes.length;
  while (invalid - valid > 1) {
    const middle = valid + Math.floor((invalid - valid) / 2);
    const cut = [0, 1, 2, 3].find((k) => middle - k >= valid && isUtf8(bytes.subarray(valid, middle - k)));
    if (cut === undefined || cut === middle - valid) invalid = middle;
    else valid = middle - cut;
  }
  return valid;
}
