import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readStateDocument } from '../../src/terraform/document.ts';
import { isJsonbText, writeJsonbText } from '../../src/terraform/jsonb-text.ts';
import { createEmptyTestDatabase, type TestDatabase } from '../support/database.ts';
import { caseNumbers, loadCase, loadTerraformHistory } from '../support/fixtures.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createEmptyTestDatabase();
});

afterAll(() => database.drop());

/** What PostgreSQL makes of each text. */
async function throughJsonb(texts: readonly string[]): Promise<string[]> {
  const { rows } = await database.database.pool.query<{ text: string }>(
    'select (t.json::jsonb)::text as text from unnest($1::text[]) with ordinality as t (json, n) order by n',
    [texts],
  );
  return rows.map(({ text }) => text);
}

function written(text: string): string {
  const pieces: Buffer[] = [];
  writeJsonbText(Buffer.from(text), (piece) => pieces.push(Buffer.from(piece)));
  return Buffer.concat(pieces).toString();
}

function isCanonical(text: string): boolean {
  return isJsonbText(Buffer.from(text));
}

/** Holds both functions against PostgreSQL. */
async function expectAsPostgres(texts: readonly string[]): Promise<void> {
  const stored = await throughJsonb(texts);
  expect(texts.map(written)).toEqual(stored);
  expect(texts.filter((text, i) => isCanonical(text) !== (text === stored[i]))).toEqual([]);
  expect(stored.filter((text) => !isCanonical(text))).toEqual([]);
  expect(stored.map(written)).toEqual(stored);
}

function isAccepted(text: string): boolean {
  try {
    JSON.parse(text);
    readStateDocument(Buffer.from(`{"version": 4, "serial": 1, "unknown": ${text}}`));
    return true;
  } catch {
    return false;
  }
}

const space = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  { weight: 2, arbitrary: fc.constant(' ') },
  { weight: 1, arbitrary: fc.constantFrom('\n  ', '\t', '\r\n') },
);

const digits = (maxLength: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${maxLength}}$`));

const number = fc
  .tuple(
    fc.constantFrom('', '', '-'),
    fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,24}$/)),
    fc.option(fc.oneof(fc.constantFrom('0', '00', '50'), digits(20)), { nil: null }),
    fc.option(
      fc.tuple(
        fc.constantFrom('e', 'E'),
        fc.constantFrom('', '+', '-'),
        fc.constantFrom('', '000'),
        fc.nat(60),
      ),
      { nil: null },
    ),
  )
  .map(
    ([sign, integer, fraction, exponent]) =>
      sign + integer + (fraction === null ? '' : `.${fraction}`) + (exponent?.join('') ?? ''),
  );

const SHORT_ESCAPES = new Map([...'bfnrt"\\/'].map((letter) => [JSON.parse(`"\\${letter}"`), `\\${letter}`]));

const character = fc
  .oneof(
    fc.constantFrom(
      ...'ab <>&\'/\\"\b\f\n\r\t\u0001\u000b\u001f\u007f\u0080\u2028\u2029é߿ࠀ￿\u{10000}🚀\u{10ffff}',
    ),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((unit) => unit !== '\0'),
  )
  .chain((unit) => {
    const hex = unit
      .split('')
      .map((half) => `\\u${half.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('');
    const spellings = [JSON.stringify(unit).slice(1, -1), hex, hex.toUpperCase().replaceAll('\\U', '\\u')];
    return fc.constantFrom(...spellings, SHORT_ESCAPES.get(unit) ?? spellings[0] ?? unit);
  });

const string = fc.array(character, { maxLength: 12 }).map((units) => `"${units.join('')}"`);

const key = fc.oneof(
  string,
  fc.constantFrom(
    ...['""', '"a"', '"b"', '"ab"', '"ba"', '"B"', '"\\u0061"', '"a\\u0062"', '"é"', '"\\u00E9"', '"\\n"'],
    ...['"0"', '"1"', '"10"', '"-1"', '"__proto__"', '"constructor"', '"toString"', '"\\u005f_proto__"'],
  ),
);

const { value } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.oneof(number, string, fc.constantFrom('true', 'false', 'null')),
    tie('array'),
    tie('object'),
  ),
  array: fc
    .tuple(space, fc.array(fc.tuple(space, tie('value'), space), { maxLength: 6 }))
    .map(([empty, items]) => `[${items.map((item) => item.join('')).join(',') || empty}]`),
  object: fc
    .tuple(
      space,
      fc.array(fc.tuple(space, key, space, fc.constant(':'), space, tie('value'), space), { maxLength: 8 }),
    )
    .map(([empty, members]) => `{${members.map((member) => member.join('')).join(',') || empty}}`),
}));

const nested = fc
  .tuple(value, fc.array(fc.constantFrom('[', '{"a":', '[1, ', '{"b" : 1, "a": '), { maxLength: 400 }))
  .map(([inner, openings]) => {
    const closings = openings.map((opening) => (opening.startsWith('[') ? ']' : '}'));
    return openings.join('') + inner + closings.reverse().join('');
  });

const spelled = fc
  .tuple(space, fc.oneof({ weight: 9, arbitrary: value }, { weight: 1, arbitrary: nested }), space)
  .map((parts) => parts.join(''));

/** The text of jsonb with one character taken away, put in or replaced, where that leaves JSON. */
const edited = fc
  .tuple(value.map(written), fc.nat(), fc.nat(1), fc.constantFrom('', ...'{}[],:"\\/0-.eE ab\nu'))
  .map(([text, at, removed, inserted]) => {
    const position = at % (text.length + 1);
    return text.slice(0, position) + inserted + text.slice(position + removed);
  })
  .filter((text) => text.isWellFormed() && isAccepted(text));

/** Many at once, so that PostgreSQL is asked once for all of them. */
const batch = (text: fc.Arbitrary<string>) => fc.array(text, { maxLength: 300, size: 'max' });

describe('any JSON that a state may hold, in any spelling', () => {
  test('is written as PostgreSQL gives it out, and told from what PostgreSQL would change', async () => {
    await fc.assert(fc.asyncProperty(batch(spelled), expectAsPostgres), { numRuns: 40 });
  });

  test('is told from the text of jsonb when it differs by one edit', async () => {
    await fc.assert(fc.asyncProperty(batch(edited), expectAsPostgres), { numRuns: 40 });
  });
});

describe('states', () => {
  test('that Terraform wrote become the text of jsonb', async () => {
    const documents = loadTerraformHistory().map(({ document }) => document);
    expect(documents).toHaveLength(10);
    await expectAsPostgres(documents);
  });

  test('of every recorded case that PostgreSQL can hold, too', async () => {
    const documents = caseNumbers()
      .flatMap((number) => loadCase(number).versions.map((version) => version.raw_state))
      .filter(isAccepted);
    expect(documents.length).toBeGreaterThan(15);
    await expectAsPostgres(documents);
  });
});

describe('the text of jsonb', () => {
  test('has numbers written out with the scale that they were spelled with, and no negative zero', async () => {
    const numbers = {
      '1.50': '1.50',
      '9007199254740993': '9007199254740993',
      '1e3': '1000',
      '1E+3': '1000',
      '1.5e1': '15',
      '1.50e1': '15.0',
      '1.50e2': '150',
      '1e-3': '0.001',
      '-1.5e-2': '-0.015',
      '10e-1': '1.0',
      '0.001e1': '0.01',
      '0.001e5': '100',
      '1e00000000000000000000002': '100',
      '-0': '0',
      '0.0': '0.0',
      '-0.0': '0.0',
      '0e5': '0',
      '-0e-3': '0.000',
      '-0.00e1': '0.0',
      '1e999': `1${'0'.repeat(999)}`,
      '-1e-999': `-0.${'0'.repeat(998)}1`,
    };
    expect(Object.fromEntries(Object.keys(numbers).map((text) => [text, written(text)]))).toEqual(numbers);
    await expectAsPostgres(Object.keys(numbers));
  });

  test('has in strings the fewest escapes, in lower case, and everything else as it is', async () => {
    expect(written('"\\u0041\\/\\u00E9\\ud83D\\uDE80\\u2028\\u007f"')).toBe('"A/é🚀\u2028\u007f"');
    expect(written('"\\u0008\\u000C\\u000a\\u000d\\u0009\\u0022\\u005c\\u000B\\u001F"')).toBe(
      '"\\b\\f\\n\\r\\t\\"\\\\\\u000b\\u001f"',
    );
    const escapes = Array.from({ length: 0x180 }, (_, unit) => `"\\u${unit.toString(16).padStart(4, '0')}"`);
    await expectAsPostgres(escapes.slice(1));
  });

  test('has the shorter key first, and those of one length in the order of their bytes', async () => {
    const text =
      '{"ab":1,"é":2,"b":3,"a":4,"":5,"\\u0041":6,"🚀":7,"\\uffff0":8,"zzzz":9,"a\\nb":10,"aaa":11}';
    expect(written(text)).toBe(
      '{"": 5, "A": 6, "a": 4, "b": 3, "ab": 1, "é": 2, "a\\nb": 10, "aaa": 11, "zzzz": 9, "\uffff0": 8, "🚀": 7}',
    );
    await expectAsPostgres([text]);
  });

  test('has of equal keys the last alone, however they are spelled', async () => {
    const text =
      '{"b": {"x": 1}, "a": [1, 2], "\\u0062": {"y": {"z": 1, "z": 2}}, "a": 1e1, "c": 0, "\\u0063": {}}';
    expect(written(text)).toBe('{"a": 10, "b": {"y": {"z": 2}}, "c": {}}');
    await expectAsPostgres([text]);
  });

  test('comes whole when strings, numbers and keys are larger than a piece of it', async () => {
    const long = `"${'x'.repeat(200_001)}\\u00e9${'\\/'.repeat(70_000)}${'é'.repeat(40_000)}"`;
    const numbers = `[${Array.from({ length: 30_000 }, (_, i) => `${i}.50e${i % 7}`).join()}]`;
    await expectAsPostgres([`{${long}:${long},"n":${numbers}, ${long.slice(0, -1)}y" : ${long}}`]);
  });

  test('has any number of keys in order, from any order', async () => {
    const keys = Array.from({ length: 5000 }, (_, i) => `"${((i * 7919) % 4001).toString(36)}"`);
    const members = (list: readonly string[]) => `{${list.map((name, i) => `${name}:${i}`).join()}}`;
    const sizes = [1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 100, 5000];
    const objects = sizes.map((size) => members(keys.slice(0, size)));
    await expectAsPostgres([...objects, members(keys.toSorted()), members(keys.toSorted().reverse())]);
  });

  test.each([
    ['no space after a comma', '[1,2]'],
    ['two spaces after a comma', '[1,  2]'],
    ['a space before a comma', '[1 , 2]'],
    ['no space after a colon', '{"a":1}'],
    ['two spaces after a colon', '{"a":  1}'],
    ['a space before a colon', '{"a" : 1}'],
    ['a space inside an empty array', '[ ]'],
    ['a space inside an empty object', '{ }'],
    ['a space after a bracket', '[ 1]'],
    ['a space before a bracket', '[1 ]'],
    ['a space after a brace', '{ "a": 1}'],
    ['a space before a brace', '{"a": 1 }'],
    ['white space before it', ' 1'],
    ['white space after it', '{}\n'],
    ['a longer key first', '{"aa": 1, "b": 1}'],
    ['a greater key first', '{"b": 1, "a": 1}'],
    ['a key twice', '{"a": 1, "a": 1}'],
    ['keys out of order after an object', '{"b": {"z": 1}, "a": 1}'],
    ['an escaped solidus', '"\\/"'],
    ['an escaped letter', '"\\u0061"'],
    ['an escape in a key', '{"\\u0061": 1}'],
    ['a long escape where there is a short one', '"\\u000a"'],
    ['an escape in capitals', '"\\u001F"'],
    ['an escape above ASCII', '"\\u00e9"'],
    ['an exponent', '1e3'],
    ['an exponent in capitals', '10E0'],
    ['a negative zero', '-0'],
    ['a negative zero with decimals', '[-0.00]'],
  ])('has not: %s', async (_, text) => {
    expect(isCanonical(text)).toBe(false);
    expect(written(text)).not.toBe(text);
    await expectAsPostgres([text]);
  });
});
