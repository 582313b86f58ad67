import TestSequencer from '@jest/test-sequencer';

/** Where tests start processes and wait for what they do, whatever the size of their files. */
const LONG = /\/test\/(chaos|development|e2e|fuzz|kl|leaks)\//;

/** Jest begins with the largest files where it knows of no earlier run: small ones that take long would be left to the end. */
export default class LongestFirst extends TestSequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    const isLong = ({ path }) => LONG.test(path);
    return [...sorted.filter(isLong), ...sorted.filter((test) => !isLong(test))];
  }
}
