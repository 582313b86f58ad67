import { describe, expect, test } from '@jest/globals';
import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  type ResourceInstance,
  readStateDocument,
} from '../../src/terraform/document.ts';
import { UnsupportedStateDocumentError } from '../../src/terraform/errors.ts';
import { MAX_REPEATED_BYTES } from '../../src/terraform/limits.ts';
import { caseNumbers, loadCase } from '../support/fixtures.ts';
import { resourceText, stateText } from './state-text.ts';

const VALUE_THAT_MUST_NOT_LEAK = 'hunter2';

function read(text: string) {
  return readStateDocument(Buffer.from(text));
}

function refusal(
  bytes: string | Buffer,
  limits = DEFAULT_STATE_DOCUMENT_LIMITS,
): UnsupportedStateDocumentError {
  try {
    readStateDocument(Buffer.from(bytes), limits);
  } catch (error) {
    if (error instanceof UnsupportedStateDocumentError) return error;
    throw error;
  }
  throw new Error('The document was accepted.');
}

function onlyInstance(text: string): ResourceInstance {
  const [instance, ...others] = read(text).instances();
  if (instance === undefined || others.length > 0) throw new Error('One instance was expected.');
  return instance;
}

const resourceWith = (member: string) =>
  `{"version": 4, "serial": 1, "resources": [{"mode": "data", ${member}, "instances": [{}]}]}`;

describe('what a document says of itself', () => {
  test('is read wherever it stands, not where its name first occurs', async () => {
    const history = await loadCase('10');
    expect(read(history.versions[0]?.raw_state ?? '').serial).toBe(3n);
  });

  test('keeps every serial of 64 bits, and the spelling of the lineage', () => {
    const lineage = '{7C1E5D1A3B52-4C8E-9A44-0D8F2B6C9E10}';
    const document = read(`{"version": 4, "serial": 9223372036854775807, "lineage": "${lineage}"}`);
    expect(document.serial).toBe(9223372036854775807n);
    expect(document.lineage).toBe(lineage);
  });

  test('tells an absent terraform_version from an empty one', () => {
    expect(read('{"version": 4, "serial": 0}').terraformVersion).toBeNull();
    expect(read('{"version": 4, "serial": 0, "terraform_version": ""}').terraformVersion).toBe('');
    expect(read('{"version": 4, "serial": 0}').lineage).toBe('');
  });

  test('of duplicate keys the last counts, and lists are read into the elements of the first', () => {
    const document = read(
      `{"version": 3, "serial": 1, "resources": [${resourceText('{}', '{}')}],
        "outputs": {"a": {"value": 1}, "a": {"value": 2}},
        "version": 4, "serial": 2, "resources": [${resourceText('{"index_key": 5, "index_key": 6}')}]}`,
    );
    expect(document.serial).toBe(2n);
    expect([...document.instances()].map(({ address }) => address)).toEqual(['aws_instance.web[6]']);
    expect([...document.outputs()]).toHaveLength(1);
  });

  test('a key spelled with escapes is the same key', () => {
    expect(read('{"version": 4, "s\\u0065rial": 5}').serial).toBe(5n);
  });
});

describe('resource instances', () => {
  test('take mode, type, name, provider and module from their resource, and the rest from themselves', () => {
    const text = `{"version": 4, "serial": 1, "resources": [{"module": "module.m", "mode": "data", "type": "t",
      "name": "n", "provider": "p", "each": "map", "instances": [{"index_key": "k<1>", "schema_version": 2,
      "attributes": { "a" : 1.10 }, "sensitive_attributes": [ ], "dependencies": ["x.y", "\\u0061.b"]}]}]}`;
    const { attributes, sensitivePaths, dependencies, ...instance } = onlyInstance(text);
    expect(instance).toEqual({
      address: 'module.m.data.t.n["k<1>"]',
      mode: 'data',
      type: 't',
      name: 'n',
      provider: 'p',
      modulePath: 'module.m',
      indexKind: 'string',
      indexValue: 'k<1>',
      schemaVersion: 2,
      deposed: false,
      place: { resource: 0, instance: 0 },
    });
    expect(attributes.toString()).toBe('{ "a" : 1.10 }');
    expect(sensitivePaths.toString()).toBe('[ ]');
    expect(dependencies.toString()).toBe('["x.y", "\\u0061.b"]');
  });

  test('have defaults for what is absent, while JSON null stays null', () => {
    const absent = onlyInstance(stateText('{}'));
    expect(absent.attributes.toString()).toBe('{}');
    expect(absent.sensitivePaths.toString()).toBe('[]');
    expect(absent.dependencies.toString()).toBe('[]');
    expect(absent).toMatchObject({ schemaVersion: 0, indexKind: 'none', indexValue: null });
    const nulls = onlyInstance(
      stateText(
        '{"attributes": null, "sensitive_attributes": null, "dependencies": null, "index_key": null, "schema_version": null}',
      ),
    );
    expect(nulls.attributes.toString()).toBe('null');
    expect(nulls.sensitivePaths.toString()).toBe('null');
    expect(nulls.dependencies.toString()).toBe('[]');
    expect(nulls).toMatchObject({ schemaVersion: 0, indexKind: 'none', indexValue: null });
  });

  test('are handed out as views of the document, not as copies', () => {
    const bytes = Buffer.from(stateText('{"attributes": {"id": "i-1"}}'));
    const [instance] = readStateDocument(bytes).instances();
    expect(instance?.attributes.buffer).toBe(bytes.buffer);
  });

  test('have the addresses that Kilolock gives them', async () => {
    const { versions, expect: outcome } = await loadCase('04');
    const addresses = [...read(versions[0]?.raw_state ?? '').instances()].map(({ address }) => address);
    expect(addresses).toEqual(outcome.addresses);
  });

  test.each([
    ['0', 'int', '0', '[0]'],
    ['-5', 'int', '-5', '[-5]'],
    ['"0"', 'int', '0', '[0]'],
    ['"-5"', 'int', '-5', '[-5]'],
    ['"9223372036854775807"', 'int', '9223372036854775807', '[9223372036854775807]'],
    ['"9223372036854775808"', 'string', '9223372036854775808', '["9223372036854775808"]'],
    ['"007"', 'string', '007', '["007"]'],
    ['"1e3"', 'string', '1e3', '["1e3"]'],
    ['"1.0"', 'string', '1.0', '["1.0"]'],
    ['""', 'string', '', '[""]'],
    ['null', 'none', null, ''],
  ])('index_key %s is of kind %s', (key, indexKind, indexValue, suffix) => {
    expect(onlyInstance(stateText(`{"index_key": ${key}}`))).toMatchObject({
      indexKind,
      indexValue,
      address: `aws_instance.web${suffix}`,
    });
  });

  test('say whether they are deposed', () => {
    const text = `{"version": 4, "serial": 1, "resources": [${resourceText('{}', '{"deposed": "a1b2c3d4"}', '{"deposed": ""}', '{"deposed": null}')}]}`;
    expect([...read(text).instances()].map(({ deposed }) => deposed)).toEqual([false, true, false, false]);
  });
});

test('outputs are counted by their names', () => {
  const document = read(
    `{"version": 4, "serial": 1, "outputs": {"a\\"b": {"value": [1.0 ], "sensitive": true}, "empty": {}, "\\u0065mpty": {}}}`,
  );
  expect([...document.outputs()]).toHaveLength(2);
});

describe('the cases', () => {
  const REFUSED: Readonly<Record<string, readonly [serial: string, path: string]>> = {
    '11': ['3', '$.resources[0].instances[0].attributes["user_data"]'],
    '12': ['1', '$.resources[0].instances[0].attributes["s"]'],
    '13': ['2', '$'],
    '14': ['1', '$.version'],
    '15': ['1', '$.lineage'],
    '17': ['1', '$.resources[0].instances[0].attributes["n"]'],
  };

  test('every document is accepted but those that no backend can hold, which are refused with their path', async () => {
    const refused: Record<string, [serial: string, path: string]> = {};
    for (const number of await caseNumbers()) {
      for (const { serial, raw_state } of (await loadCase(number)).versions) {
        try {
          read(raw_state);
        } catch (error) {
          if (!(error instanceof UnsupportedStateDocumentError)) throw error;
          refused[number] = [serial, error.path];
        }
      }
    }
    expect(refused).toEqual(REFUSED);
  });

  test('a state encrypted by OpenTofu is named as such', async () => {
    const [, encrypted] = (await loadCase('13')).versions;
    expect(refusal(encrypted?.raw_state ?? '').message).toContain('OpenTofu');
  });
});

describe('refused, naming the path', () => {
  test.each([
    ['an array', '[]', '$', 'must be a JSON object'],
    ['an empty file', '', '$', 'must be a JSON object'],
    ['no version', '{"serial": 1}', '$', 'no "version"'],
    ['version 4.0', '{"version": 4.0, "serial": 1}', '$.version', 'only version 4'],
    ['version "4"', '{"version": "4", "serial": 1}', '$.version', 'only version 4'],
    ['serial 1.0', '{"version": 4, "serial": 1.0}', '$.serial', 'must be an integer'],
    ['serial "7"', '{"version": 4, "serial": "7"}', '$.serial', 'must be an integer'],
    ['serial 2^63', '{"version": 4, "serial": 9223372036854775808}', '$.serial', 'must be an integer'],
    ['lineage 7', '{"version": 4, "serial": 1, "lineage": 7}', '$.lineage', 'must be a string'],
    [
      'a lineage with space around it',
      '{"version": 4, "serial": 1, "lineage": " 7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10"}',
      '$.lineage',
      'uuid',
    ],
    ['resources {}', '{"version": 4, "serial": 1, "resources": {}}', '$.resources', 'must be an array'],
    ['outputs []', '{"version": 4, "serial": 1, "outputs": []}', '$.outputs', 'must be an object'],
    [
      'an output 1',
      '{"version": 4, "serial": 1, "outputs": {"o": 1}}',
      '$.outputs["o"]',
      'must be an object',
    ],
    [
      'sensitive 1',
      '{"version": 4, "serial": 1, "outputs": {"o": {"sensitive": 1}}}',
      '$.outputs["o"].sensitive',
      'true or false',
    ],
    [
      'no mode',
      '{"version": 4, "serial": 1, "resources": [{"type": "t", "instances": [{}]}]}',
      '$.resources[0]',
      'no "mode"',
    ],
    [
      'another mode',
      '{"version": 4, "serial": 1, "resources": [{"mode": "ephemeral", "instances": [{}]}]}',
      '$.resources[0].mode',
      '"managed" or "data"',
    ],
    [
      'a name 1',
      '{"version": 4, "serial": 1, "resources": [{"mode": "data", "name": 1}]}',
      '$.resources[0].name',
      'must be a string',
    ],
    ['an instance []', stateText('[]'), '$.resources[0].instances[0]', 'must be an object'],
    [
      'index_key 1.0',
      stateText('{"index_key": 1.0}'),
      '$.resources[0].instances[0].index_key',
      'integer of 64 bits',
    ],
    [
      'index_key 1e2',
      stateText('{"index_key": 1e2}'),
      '$.resources[0].instances[0].index_key',
      'integer of 64 bits',
    ],
    [
      'index_key 2^63',
      stateText('{"index_key": 9223372036854775808}'),
      '$.resources[0].instances[0].index_key',
      'integer of 64 bits',
    ],
    [
      'index_key true',
      stateText('{"index_key": true}'),
      '$.resources[0].instances[0].index_key',
      'integer of 64 bits or a string',
    ],
    [
      'schema_version 2^31',
      stateText('{"schema_version": 2147483648}'),
      '$.resources[0].instances[0].schema_version',
      '32 bits',
    ],
    [
      'a dependency 1',
      stateText('{"dependencies": ["a.b", 1]}'),
      '$.resources[0].instances[0].dependencies[1]',
      'must be a string',
    ],
    ['a byte order mark', '\ufeff{"version": 4, "serial": 1}', '$', 'byte order mark'],
    ['something after the document', '{"version": 4, "serial": 1} {}', '$', 'follows the document'],
    [
      'a document cut short',
      '{"version": 4, "serial": 1, "resources": [',
      '$.resources[0]',
      'must be an object',
    ],
  ])('%s', (_what, text, path, reason) => {
    const error = refusal(text);
    expect(error.code).toBe('UNSUPPORTED_STATE_DOCUMENT');
    expect(error.path).toBe(path);
    expect(error.reason).toContain(reason);
  });

  test.each([
    ['a comma too many', '{"a": [1, ]}'],
    ['a comma missing', '{"a": 1 "b": 2}'],
    ['a colon missing', '{"a" 1}'],
    ['a key without quotes', '{a: 1}'],
    ['single quotes', "{'a': 1}"],
    ['a comment', '{"a": 1 /* one */}'],
    ['a number with a leading zero', '{"a": 01}'],
    ['a number with a plus', '{"a": +1}'],
    ['a number ending in a point', '{"a": 1.}'],
    ['a number beginning with a point', '{"a": .5}'],
    ['a number without exponent digits', '{"a": 1e}'],
    ['a hexadecimal number', '{"a": 0x10}'],
    ['NaN', '{"a": NaN}'],
    ['a word cut short', '{"a": tru}'],
    ['a word too long', '{"a": nullx}'],
    ['a control character in a string', '{"a": "\u0001"}'],
    ['a line feed in a string', '{"a": "\n"}'],
    ['an unknown escape', '{"a": "\\x41"}'],
    ['a short \\u escape', '{"a": "\\u12"}'],
    ['\\u0000 in a key', '{"a\\u0000": 1}'],
    ['a low surrogate first', '{"a": "\\udc00\\ud800"}'],
    ['a high surrogate before another escape', '{"a": "\\ud800\\u0041"}'],
    ['a string that is not closed', '{"a": "b'],
    ['brackets that do not match', '{"a": [1}]'],
    ['white space that JSON does not know', '{"a":\u00a01}'],
  ])('attributes with %s', (_what, attributes) => {
    expect(refusal(stateText(`{"attributes": ${attributes}}`)).path).toMatch(
      /^\$\.resources\[0\]\.instances\[0\]\.attributes/,
    );
  });

  test('bytes that are not UTF-8', () => {
    const text = stateText('{"attributes": {"a": "é", "b": ["x", "?"]}}');
    const bytes = Buffer.from(text);
    const at = bytes.indexOf('"?"') + 1;
    for (const bad of [0x80, 0xc0, 0xff, 0xed]) {
      bytes[at] = bad;
      const error = refusal(bytes);
      expect(error.reason).toContain('UTF-8');
      expect(error.path).toBe('$.resources[0].instances[0].attributes["b"][1]');
    }
  });
});

describe('limits', () => {
  const limits = DEFAULT_STATE_DOCUMENT_LIMITS;
  const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
  const withNumber = (number: string) => stateText(`{"attributes": {"n": ${number}}}`);

  test('of depth count the document as the first, and hold at any depth of recursion', () => {
    expect(onlyInstance(stateText(`{"attributes": ${nested(9995)}}`)).attributes).toHaveLength(19_990);
    expect(refusal(stateText(`{"attributes": ${nested(9996)}}`)).reason).toContain('10000 deep');
    expect(refusal(stateText(`{"attributes": ${'['.repeat(1_000_000)}`)).reason).toContain('10000 deep');
  });

  test.each(['-0', '1.10', '18446744073709551615', '1e3', '1E-3', '0.1', '1e999', '1e-999'])(
    'of digits let %s through, as spelled',
    (number) => {
      expect(onlyInstance(withNumber(number)).attributes.toString()).toBe(`{"n": ${number}}`);
    },
  );

  test.each(['1e130000', '1e1000', '1e-1000', '-0.1e1001'])('of digits stop %s', (number) => {
    expect(refusal(withNumber(number)).reason).toContain('1000 digits');
  });

  test('of digits are those of numeric for a number that is spelled without an exponent', () => {
    for (const digits of ['1'.repeat(131_072), `0.${'1'.repeat(16_383)}`]) {
      expect(() => read(withNumber(digits))).not.toThrow();
      expect(refusal(withNumber(`${digits}1`)).reason).toContain('which PostgreSQL cannot store');
    }
  });

  test('of size count the bytes, and numbers as PostgreSQL will write them out', () => {
    const text = stateText(`{"attributes": [${Array(20).fill('1e900').join(',')}]}`);
    expect(refusal(text, { ...limits, maxBytes: 100 }).reason).toContain('larger than 100 bytes');
    expect(refusal(text, { ...limits, maxBytes: 10_000 }).reason).toContain('written out');
    expect(() => readStateDocument(Buffer.from(text), { ...limits, maxBytes: 20_000 })).not.toThrow();
  });

  test.each([
    [
      'an index key',
      '$.resources[0].instances[0].index_key',
      (text: string) => stateText(`{"index_key": ${text}}`),
    ],
    ['a type', '$.resources[0].type', (text: string) => resourceWith(`"type": ${text}`)],
    ['a name', '$.resources[0].name', (text: string) => resourceWith(`"name": ${text}`)],
    ['a module', '$.resources[0].module', (text: string) => resourceWith(`"module": ${text}`)],
    ['an output', null, (text: string) => `{"version": 4, "serial": 1, "outputs": {${text}: {"value": 1}}}`],
  ])('of %s end far above what an index holds', (_what, path, documentWith) => {
    const documentOf = (bytes: number) => documentWith(`"${'k'.repeat(bytes - 2)}"`);
    expect(() => read(documentOf(8_388_608))).not.toThrow();
    const error = refusal(documentOf(8_388_609));
    if (path !== null) expect(error.path).toBe(path);
    expect(error.reason).toContain('which no index of PostgreSQL holds');
  });

  test.each([
    ['a provider', '$.resources[0].provider', (text: string) => resourceWith(`"provider": ${text}`)],
    [
      'a version of Terraform',
      '$.terraform_version',
      (text: string) => `{"version": 4, "serial": 1, "terraform_version": ${text}}`,
    ],
    ['a lineage', '$.lineage', (text: string) => `{"version": 4, "serial": 1, "lineage": ${text}}`],
  ])('of %s keep it from filling memory as a string', (_what, path, documentWith) => {
    const error = refusal(documentWith(`"${'k'.repeat(8_388_607)}"`));
    expect(error.path).toBe(path);
    expect(error.reason).toContain('has more than 8388608 bytes');
  });

  test('of what the rows of instances repeat count what their resource says, once for each but the first', () => {
    const repetitions = 10_000;
    const withModule = (bytes: number) => {
      const instances = Array(repetitions + 1).fill('{}');
      const resource = `{"module": "${'m'.repeat(bytes - 2)}", "mode": "managed", "instances": [${instances.join(', ')}]}`;
      return `{"version": 4, "serial": 1, "resources": [{"mode": "data"}, ${resource}]}`;
    };
    const most = Math.floor(MAX_REPEATED_BYTES / repetitions) - '"managed"'.length;
    expect(() => read(withModule(most))).not.toThrow();
    expect(refusal(withModule(most + 1)).path).toBe('$.resources[1]');
  });

  test('of entries count resources, instances and outputs', () => {
    const text = `{"version": 4, "serial": 1, "outputs": {"o": {}}, "resources": [${resourceText('{}', '{}')}]}`;
    expect(() => readStateDocument(Buffer.from(text), { ...limits, maxEntries: 4 })).not.toThrow();
    expect(refusal(text, { ...limits, maxEntries: 3 }).path).toBe('$.resources[0].instances[1]');
  });

  test('of dependencies count those of all instances', () => {
    const text = stateText('{"dependencies": ["a.b", "c.d", "e.f"]}');
    expect(() => readStateDocument(Buffer.from(text), { ...limits, maxDependencies: 3 })).not.toThrow();
    expect(refusal(text, { ...limits, maxDependencies: 2 }).path).toBe(
      '$.resources[0].instances[0].dependencies[2]',
    );
  });
});

describe('what a refusal shows', () => {
  test('is never a value', () => {
    for (const value of [
      `"${VALUE_THAT_MUST_NOT_LEAK}\\u0000"`,
      `"${VALUE_THAT_MUST_NOT_LEAK}`,
      `"${VALUE_THAT_MUST_NOT_LEAK}" x`,
    ]) {
      const error = refusal(stateText(`{"attributes": {"password": ${value}}}`));
      expect(`${error.message} ${error.stack}`).not.toContain(VALUE_THAT_MUST_NOT_LEAK);
    }
    for (const member of [
      `"lineage": "${VALUE_THAT_MUST_NOT_LEAK}"`,
      `"serial": "${VALUE_THAT_MUST_NOT_LEAK}"`,
    ]) {
      expect(refusal(`{"version": 4, "serial": 1, ${member}}`).message).not.toContain(
        VALUE_THAT_MUST_NOT_LEAK,
      );
    }
    expect(
      refusal(
        `{"version": 4, "serial": 1, "resources": [{"mode": "${VALUE_THAT_MUST_NOT_LEAK}", "instances": [{}]}]}`,
      ).message,
    ).not.toContain(VALUE_THAT_MUST_NOT_LEAK);
  });

  test('is 64 characters of the name of an attribute, and nothing of the keys of maps, which are contents', () => {
    const key = 'k'.repeat(64);
    const { path } = refusal(
      stateText(`{"attributes": {"${key}more": {"secret": [1, {"it's": "\\u0000"}]}}}`),
    );
    expect(path).toBe(`$.resources[0].instances[0].attributes["${key}…"][…][1][…]`);
  });

  test('is a path of bounded length', () => {
    const deep = `${`{"${'k'.repeat(100)}":`.repeat(400)}"\\u0000"`;
    expect(refusal(stateText(`{"attributes": ${deep}`)).path.length).toBeLessThan(4000);
  });
});
