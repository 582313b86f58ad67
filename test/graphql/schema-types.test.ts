import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { executeCodegen, loadContext } from '@graphql-codegen/cli';
import { expect, test } from '@jest/globals';

const GENERATED = 'src/graphql/schema-types.ts';

test('the resolver types are those of schema.graphql (npm run codegen rewrites them)', async () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const context = await loadContext(`${root}codegen.yml`);
  context.cwd = root;
  const { result } = await executeCodegen(context);
  const [file] = result;
  expect(file?.filename).toContain(GENERATED);
  expect(await readFile(new URL(`../../${GENERATED}`, import.meta.url), 'utf8')).toBe(file?.content);
});
