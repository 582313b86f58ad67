/** Characters that are not seen, or that change how others are; a terminal obeys some of them. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** A text that somebody else wrote, for a terminal: on one line, and with nothing in it that a terminal obeys. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** JSON for a pipe or a terminal: 64-bit integers as decimal strings, and nothing in it that a terminal obeys. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, (_key, each) => (typeof each === 'bigint' ? String(each) : each), 2);
  return text.replace(UNSEEN, (character) =>
    character === '\n'
      ? character
      : character
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  );
}

const UNITS = ['kB', 'MB', 'GB', 'TB'];

/** A number of bytes for people, in powers of a thousand. */
export function bytesText(bytes: bigint | number): string {
  let value = Number(bytes);
  if (value < 1000) return `${value} bytes`;
  let unit = -1;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${UNITS[unit]}`;
}

/** A length of time for people. */
export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** A number of things, with their name. */
export function counted(count: number | bigint, one: string): string {
  return `${count} ${one}${Number(count) === 1 ? '' : 's'}`;
}

/** A word as a POSIX shell reads it. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
