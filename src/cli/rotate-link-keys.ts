/**
 * @file Makes a new key for download links in `DATA_DIR`. Running services sign with it from then on, and go on
 * accepting the links of the keys before it until these have run out.
 */

import { rotateLinkKeys } from '../auth/link-keys.ts';
import { OperatorError } from '../base/operator-error.ts';
import { readConfig } from '../config.ts';

try {
  const { dataDirectory } = readConfig({ DATA_DIR: process.env.DATA_DIR });
  const kept = await rotateLinkKeys(dataDirectory);
  process.stdout.write(`Links are signed with a new key; ${kept} keys are accepted.\n`);
} catch (error) {
  if (!(error instanceof OperatorError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
