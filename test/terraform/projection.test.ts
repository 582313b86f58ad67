import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import pg from 'pg';
import type { AttributeLayout } from '../../src/terraform/attributes-hash.ts';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import { readStateDocument } from '../../src/terraform/document.ts';
import { StateHistoryReader } from '../../src/terraform/history-reader.ts';
import { projectResources } from '../../src/terraform/projection.ts';
import { createEmptyTestDatabase, type TestDatabase } from '../support/database.ts';
import { loadCase, loadTerraformHistory } from '../support/fixtures.ts';
import { jsonbTexts } from '../support/jsonb-texts.ts';
import { stateText } from './state-text.ts';
import { laidOut } from './support/laid-out.ts';
import { LifecycleRows } from './support/lifecycle-rows.ts';

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createEmptyTestDatabase();
  client = new pg.Client({ connectionString: database.connectionString });
  await client.connect();
});

afterAll(async () => {
  await client.end();
  await database.drop();
});

/** The lifecycle rows of a history, in the form of `expected-resources.json`. */
function lifecycleRows(documents: readonly string[], layout: AttributeLayout) {
  const lifecycle = new LifecycleRows();
  const reader = new StateHistoryReader(layout);
  for (const [i, text] of documents.entries()) {
    lifecycle.apply(BigInt(i + 1), reader.read(Buffer.from(text)));
  }
  return lifecycle.rows.map(({ resource, createSerial, deleteSerial }) => ({
    address: resource.address,
    index_kind: resource.indexKind,
    index_value: resource.indexValue,
    create_serial: Number(createSerial),
    delete_serial: deleteSerial === null ? null : Number(deleteSerial),
    attributes_hash: resource.attributesHash,
  }));
}

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(new URL(path, import.meta.url), 'utf8'));
}

describe('the history that Terraform wrote has the rows and hashes that Kilolock gave it', () => {
  let expected: unknown[];

  beforeAll(async () => {
    const rows = await readJson('../fixtures/terraform-history/expected-resources.json');
    if (!Array.isArray(rows) || rows.length !== 25) throw new Error('25 rows were expected.');
    expected = rows;
  });

  function expectRows(rows: readonly unknown[]) {
    expect(rows).toHaveLength(expected.length);
    expect(rows).toEqual(expect.arrayContaining(expected));
  }

  test('from the bytes as Terraform posted them', async () => {
    const documents = (await loadTerraformHistory()).map(({ document }) => document);
    expectRows(lifecycleRows(documents, 'as-written'));
    expectRows(lifecycleRows(documents, 'terraform'));
  });

  test('from the text of jsonb alone, in the layout of Terraform', async () => {
    const documents = (await loadTerraformHistory()).map(({ document }) => document);
    const stored = await jsonbTexts(client, documents);
    expect(stored).not.toEqual(documents);
    expectRows(lifecycleRows(stored, 'terraform'));
  });
});

test('attributes that go-cty and Go wrote come back byte for byte from the text of jsonb', async () => {
  const texts = await readJson('fixtures/go-cty-attributes.json');
  if (!Array.isArray(texts)) throw new Error('The fixture is no list.');
  const rendered = (await jsonbTexts(client, texts)).map((text) =>
    laidOut((layout) => layout.render(Buffer.from(text))),
  );
  expect(texts.length).toBeGreaterThan(40);
  expect(rendered).toEqual(texts);
});

describe('the layout of Terraform', () => {
  function render(text: string): string {
    return laidOut((layout) => layout.render(Buffer.from(text)));
  }

  /** The keys of the rendered object, in order. */
  function keys(text: string): string[] {
    return Object.keys(JSON.parse(render(text)));
  }

  test('indents at the depth of an instance, and leaves what is empty on one line', () => {
    expect(render('{"id": "a", "b": {}, "c": [], "d": [[]]}')).toBe(
      [
        '{',
        '            "b": {},',
        '            "c": [],',
        '            "d": [',
        '              []',
        '            ],',
        '            "id": "a"',
        '          }',
      ].join('\n'),
    );
    expect(render(' [ ] ')).toBe('[]');
    expect(render('null')).toBe('null');
  });

  test('sorts keys by their bytes, a key before those it begins, whatever their spelling', () => {
    expect(keys('{"b": 1, "\\u0061c": 1, "a b": 1, "a": 1, "B": 1, "é": 1, "🚀": 1, "\\uffee": 1}')).toEqual([
      'B',
      'a',
      'a b',
      'ac',
      'b',
      'é',
      '\uffee',
      '🚀',
    ]);
  });

  test('escapes strings as Go does', () => {
    expect(
      render(
        '"a<b>&c \u2028\u2029 \\u2028 \\/ \\u00e9 é \\ud83d\\ude80 \\b\\u0008\\f \\u001F \\" \\\\ \u007f €"',
      ),
    ).toBe('"a\\u003cb\\u003e\\u0026c \\u2028\\u2029 \\u2028 / é é 🚀 \\b\\b\\f \\u001f \\" \\\\ \u007f €"');
  });

  test('writes dependencies as Go does, in their order and without white space', () => {
    const list = Buffer.from('[ "z.z" , "a.b<\\u0026\\u2028é\\""]');
    expect(laidOut((layout) => layout.compactStrings(list))).toBe('["z.z","a.b\\u003c\\u0026\\u2028é\\""]');
    expect(laidOut((layout) => layout.compactStrings(Buffer.from('[]')))).toBe('[]');
  });

  test('keeps numbers as they are spelled', () => {
    for (const number of ['1.10', '-0', '123456789012345678901234567890', '1E+5']) {
      expect(render(number)).toBe(number);
    }
  });

  test('holds for strings and objects larger than its buffer', () => {
    const long = 'a<b>'.repeat(50_000);
    const many = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`key${i}`, i]));
    expect(JSON.parse(render(JSON.stringify({ long, many })))).toEqual({ long, many });
    expect(render(JSON.stringify(long))).toBe(`"${'a\\u003cb\\u003e'.repeat(50_000)}"`);
  });

  test('leaves what would be little but indentation as it is spelled', () => {
    const list = (depth: number) => `${'['.repeat(depth)}${'1,'.repeat(1000)}1${']'.repeat(depth)}`;
    expect(render(list(30))).toContain(`1,\n${' '.repeat(70)}1`);
    expect(render(list(40))).toBe(list(40));
  });

  test.each([
    ['a string', '{"type": "string", "value": "x"}'],
    ['null of a type', '{"type": ["list", "string"], "value": null}'],
    ['an empty list', '{"type": ["set", ["map", "bool"]], "value": []}'],
    ['a tuple', '{"type": ["tuple", ["number", "bool"]], "value": [1.5, false]}'],
    ['a map', '{"type": ["map", "number"], "value": {"a": 1, "b": null}}'],
    ['an object', '{"type": ["object", {"a": "string", "b": "dynamic"}], "value": {"a": "x", "b": null}}'],
    ['an object with optional members', '{"type": ["object", {"a": "string"}, ["a"]], "value": {"a": "x"}}'],
  ])('puts value before type for %s of dynamic type', (_what, text) => {
    expect(keys(text)).toEqual(['value', 'type']);
  });

  test.each([
    ['another type of value', '{"type": "string", "value": 1}'],
    ['a type that is none', '{"type": "A", "value": "192.0.2.1"}'],
    ['a third key', '{"type": "string", "value": "x", "name": "n"}'],
    ['a known value of unknown type', '{"type": "dynamic", "value": "x"}'],
    ['a tuple of another length', '{"type": ["tuple", ["number"]], "value": [1, 2]}'],
    [
      'an object lacking a member',
      '{"type": ["object", {"a": "string", "b": "string"}], "value": {"a": "x"}}',
    ],
    ['an object with one too many', '{"type": ["object", {"a": "string"}], "value": {"a": "x", "b": "y"}}'],
    ['a list with one element of another type', '{"type": ["list", "number"], "value": [1, "x"]}'],
    ['a list without element type', '{"type": ["list"], "value": []}'],
  ])('sorts an object with type and value that is no such wrapper: %s', (_what, text) => {
    expect(keys(text)).toEqual([...Object.keys(JSON.parse(text))].sort());
  });

  test('knows that there are no wrappers inside a wrapper, in its value or in its type', () => {
    const inner = '{"type": "string", "value": "x"}';
    const type = '["object", {"type": "string", "value": "string"}]';
    expect(JSON.stringify(JSON.parse(render(`{"type": ${type}, "value": ${inner}}`)))).toBe(
      '{"value":{"type":"string","value":"x"},"type":["object",{"type":"string","value":"string"}]}',
    );
  });

  test('reads what only looks like wrappers inside one another at most twice, and finds real ones beside them', () => {
    let text = '"string"';
    for (let depth = 0; depth < 60; depth++) text = `{"type": ["list", ${text}], "value": 1}`;
    const parse = jest.spyOn(JSON, 'parse');
    const rendered = render(`[${'{"type": "string", "value": "x"}, '.repeat(3)}${text}]`);
    const bytes = parse.mock.calls.reduce((sum, [json]) => sum + json.length, 0);
    parse.mockRestore();
    expect(bytes).toBeLessThanOrEqual(2 * text.length + 300);
    expect(rendered.match(/"value": "x"[^}]*"type": "string"/g)).toHaveLength(3);
  });
});

describe('a projection', () => {
  test('lets a deposed object hide the current one of its address, and says so', async () => {
    const [version] = (await loadCase('05')).versions;
    const projection = projectResources(
      readStateDocument(Buffer.from(version?.raw_state ?? '')),
      new AttributesHasher('as-written'),
    );
    expect(
      Array.from(projection.rows(), ({ address, attributes }) => [address, attributes.toString()]),
    ).toEqual([['aws_instance.web', '{"id": "i-old"}']]);
    expect([...projection.sharedAddresses()]).toEqual([
      { address: 'aws_instance.web', isDeposed: true, current: 1 },
    ]);
  });

  test('leaves the attributes and the dependencies as they stand', () => {
    const text = stateText('{"attributes": {"b": 1,"a":2}, "dependencies": ["z.z" ,"a.b<\\u0026"]}');
    const [row] = projectResources(
      readStateDocument(Buffer.from(text)),
      new AttributesHasher('terraform'),
    ).rows();
    expect(row?.dependencies.toString()).toBe('["z.z" ,"a.b<\\u0026"]');
    expect(row?.attributes.toString()).toBe('{"b": 1,"a":2}');
  });
});
