import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { generateSchemaTypes, SCHEMA_TYPES } from '../../codegen.ts';

test('the resolver types are those of schema.graphql (npm run codegen rewrites them)', async () => {
  expect(await readFile(SCHEMA_TYPES, 'utf8')).toBe(await generateSchemaTypes());
});
