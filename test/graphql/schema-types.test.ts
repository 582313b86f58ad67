import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { generateFiles } from '../../codegen.ts';

test('the resolver types are those of schema.graphql and codegen.yml (npm run codegen rewrites them)', async () => {
  const [file, ...others] = await generateFiles();
  expect(others).toEqual([]);
  expect(file?.location.pathname).toMatch(/\/src\/graphql\/schema-types\.ts$/);
  expect(await readFile(file?.location ?? '', 'utf8')).toBe(file?.text);
});
