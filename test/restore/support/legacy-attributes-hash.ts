import { createHash } from 'node:crypto';
import type { AttributesHashFields } from '../../../src/terraform/attributes-hash.ts';
import { laidOut } from '../../terraform/support/laid-out.ts';

/** The hash of rows that Kilolock wrote before rows had a schema version: the same without that field (data model, trap 22). */
export function legacyAttributesHash(fields: AttributesHashFields): string {
  const { mode, type, name, provider, modulePath, indexKind, indexValue } = fields;
  const { attributes, sensitivePaths, dependencies } = fields;
  const identity = [mode, type, name, provider, modulePath, indexKind, indexValue ?? ''];
  const compact = laidOut((layout) => layout.compactStrings(dependencies));
  return createHash('sha256')
    .update([...identity, attributes, sensitivePaths, compact].join('\u001f'))
    .digest('hex');
}
