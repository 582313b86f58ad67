import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const OTHER_PLACES = ['/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'];

/** Where a Chromium is on this machine; undefined when there is none. */
export function findBrowser(): string | undefined {
  const directories = (process.env.PATH ?? '').split(delimiter);
  const places = NAMES.flatMap((name) => directories.map((directory) => join(directory, name)));
  return [...places, ...OTHER_PLACES].find(isExecutable);
}

/** What a test that needs one says of itself where there is none. */
export const HOW_TO_GET_A_BROWSER = 'skipped without a browser: apt-get install chromium';

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
