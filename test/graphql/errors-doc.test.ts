import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import type { GraphQLEnumType } from 'graphql';
import { createSchema } from '../../src/graphql/schema.ts';
import { HTTP_ERROR_CODES } from '../../src/http/http-error.ts';
import { PUBLIC_ERROR_CODES } from '../../src/http/masking.ts';

/** Of errors that are told to callers wherever they are thrown. */
const CALLER_ERRORS = ['DIGESTS_INCOMPLETE', 'HISTORY_INCONSISTENT', 'STATE_AMBIGUOUS', 'UNAVAILABLE'];

const schema = createSchema({ gatewayProofRequired: false });

function codesOf(enumeration: string): string[] {
  return (schema.getType(enumeration) as GraphQLEnumType).getValues().map(({ name }) => name);
}

/** The codes that begin the rows of the table under a heading. */
async function codesUnder(document: string, heading: string): Promise<string[]> {
  const text = await readFile(new URL(`../../docs/${document}`, import.meta.url), 'utf8');
  const section = text.split(/^## /m).find((each) => each.startsWith(heading)) ?? '';
  return [...section.matchAll(/^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|/gm)].flatMap(([, cell = '']) =>
    cell.replaceAll('`', '').split(', '),
  );
}

describe('docs/errors.md explains', () => {
  test('every code of the schema, in its order, and no other', async () => {
    expect(await codesUnder('errors.md', 'What a mutation answers')).toEqual(
      codesOf('StateArchiveErrorCode'),
    );
  });

  test('every code that GraphQL is answered with', async () => {
    const codes = await codesUnder('errors.md', 'What GraphQL answers');
    expect(codes).toEqual([...PUBLIC_ERROR_CODES, ...CALLER_ERRORS, 'INTERNAL']);
  });

  test('every code of HTTP', async () => {
    expect((await codesUnder('errors.md', 'What HTTP answers')).sort()).toEqual([...HTTP_ERROR_CODES].sort());
  });
});

test('docs/restore.md explains every code of a warning, and no other', async () => {
  const text = await readFile(new URL('../../docs/restore.md', import.meta.url), 'utf8');
  const table = text.slice(text.indexOf('| warning |')).split('\n\n')[0] ?? '';
  const codes = [...table.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code);
  expect(codes.sort()).toEqual(codesOf('StateArchiveWarningCode').sort());
});
