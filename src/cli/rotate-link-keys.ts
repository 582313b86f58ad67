/**
 * @file Makes a new key for download links in `DATA_DIR`. Running services sign with it from then on, and go on
 * accepting the links of the keys before it until these have run out.
 */

import { rotateLinkKeys } from '../auth/link-keys.ts';
import { blameOperator, exitWith } from '../base/operator-error.ts';
import { readLinkKeyDirectory } from '../config.ts';

try {
  const kept = await rotateLinkKeys(readLinkKeyDirectory(process.env)).catch(
    blameOperator('DATA_DIR cannot be used'),
  );
  process.stdout.write(`Links are signed with a new key; ${kept} keys are accepted.\n`);
} catch (error) {
  exitWith(error);
}
