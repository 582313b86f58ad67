import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import { type GraphQLEnumType, parse, validate } from 'graphql';
import { createSchema } from '../../src/graphql/schema.ts';
import { HTTP_ERROR_CODES } from '../../src/http/http-error.ts';
import { PUBLIC_ERROR_CODES } from '../../src/http/masking.ts';
import { DOCUMENTS } from '../../src/kl/documents.ts';
import { EXIT, endingOf, OWN_ENDINGS, SERVICE_ENDINGS } from '../../src/kl/endings.ts';

const schema = createSchema({ gatewayProofRequired: false });
const read = (name: string) => readFile(new URL(`../../docs/${name}`, import.meta.url), 'utf8');

/** The last table of docs/errors.md: which codes, whether they may be sent again, and what `kl` ends with. */
async function endingsInTheDocument() {
  const rows = (await read('errors.md')).matchAll(
    /^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \| (as it is|mended) \| (\d+) \|$/gm,
  );
  return [...rows].flatMap(([, codes = '', again, exit]) =>
    codes
      .replaceAll('`', '')
      .split(', ')
      .map((code) => [code, { exit: Number(exit), again: again === 'as it is' }] as const),
  );
}

describe('docs/errors.md, the schema and the exit codes of kl are in step:', () => {
  test('kl knows what every code of the service means, and no other', () => {
    const codes = (schema.getType('StateArchiveErrorCode') as GraphQLEnumType)
      .getValues()
      .map(({ name }) => name);
    const callerErrors = [
      'DIGESTS_INCOMPLETE',
      'HISTORY_INCONSISTENT',
      'STATE_AMBIGUOUS',
      'UNAVAILABLE',
      'INTERNAL',
    ];
    const all = new Set([...codes, ...PUBLIC_ERROR_CODES, ...HTTP_ERROR_CODES, ...callerErrors]);
    expect(Object.keys(SERVICE_ENDINGS).sort()).toEqual([...all].sort());
  });

  test('the page says once of each code whether to ask again and what kl ends with, as it does', async () => {
    const told = await endingsInTheDocument();
    for (const [code, ending] of told) expect([code, ending]).toEqual([code, endingOf(code)]);
    expect(told.map(([code]) => code).sort()).toEqual(
      Object.keys({ ...SERVICE_ENDINGS, ...OWN_ENDINGS }).sort(),
    );
  });

  test("the page explains every code of kl's own", async () => {
    const section =
      (await read('errors.md')).split(/^## /m).find((each) => each.startsWith('What `kl` says')) ?? '';
    const codes = [...section.matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, code]) => code);
    expect(codes).toEqual(Object.keys(OWN_ENDINGS));
  });

  test('docs/kl.md has every exit code', async () => {
    const table = (await read('kl.md')).split(/^## /m).find((each) => each.startsWith('Exit codes')) ?? '';
    const codes = [...table.matchAll(/^\| (\d+) \|/gm)].map(([, code]) => Number(code));
    expect(codes).toEqual(Object.values(EXIT));
  });
});

test.each(Object.entries(DOCUMENTS))('what kl asks as %s fits the schema', (_name, document) => {
  expect(validate(schema, parse(document))).toEqual([]);
});
