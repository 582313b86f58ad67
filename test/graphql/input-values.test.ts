import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});

afterAll(() => service.stop());

const SERIAL = 'query ($value: BigInt!) { stateArchive(name: "a") { version(serial: $value) { id } } }';
const IMPORT = (value: string) =>
  `mutation ($file: Upload!) {
    importStateArchive(input: { file: $file, expectedSha256: ${value} }) { userErrors { code } }
  }`;
const IMPORT_VARIABLE = `mutation ($file: Upload!, $value: Sha256) {
  importStateArchive(input: { file: $file, expectedSha256: $value }) { userErrors { code } }
}`;
const FILE = { bytes: Buffer.from('no archive') };
const DIGEST = 'ab'.repeat(32);

describe('a BigInt', () => {
  const accepted = ['0', '-1', '9007199254740993', '9223372036854775807', '-9223372036854775808'];
  const refused = [
    '',
    '-0',
    '+1',
    '01',
    '1.0',
    '1e3',
    '0x10',
    ' 1',
    '1\n',
    '9223372036854775808',
    '-9223372036854775809',
    '1'.repeat(100),
    'hunter2',
    '٣',
  ];

  test.each(accepted)('%s is accepted, in a variable and in the document', async (value) => {
    expect((await service.ask(SERIAL, { variables: { value } })).errors).toEqual([]);
    const literal = await service.ask(`{ stateArchive(name: "a") { version(serial: "${value}") { id } } }`);
    expect(literal.errors).toEqual([]);
  });

  test.each([...refused, 1, 1.5, true, null, ['1'], { value: '1' }])(
    '%j is refused as a variable, and not repeated',
    async (value) => {
      const { status, denials, errors, text } = await service.ask(SERIAL, { variables: { value } });
      expect([status, denials]).toEqual([400, [': BAD_USER_INPUT']]);
      expect(errors[0]?.message).toContain('"$value"');
      expect(text).not.toMatch(/hunter2|11111/);
    },
  );

  test.each([
    ...refused.map((value) => JSON.stringify(value)),
    '7000000001',
    '1.5',
    'true',
    'HUNTER2',
    '["1"]',
  ])('%s is refused in the document, and told by its place alone', async (literal) => {
    const { status, denials, errors, text } = await service.ask(
      `{ stateArchive(name: "a") { version(serial: ${literal}) { id } } }`,
    );
    expect([status, denials]).toEqual([400, [': GRAPHQL_VALIDATION_FAILED']]);
    expect(errors[0]).toHaveProperty('locations');
    expect(text).not.toMatch(/hunter2|11111|7000000001/i);
  });
});

describe('a Sha256', () => {
  const refused = [
    '',
    DIGEST.toUpperCase(),
    DIGEST.slice(1),
    `${DIGEST}0`,
    `${DIGEST}\n`,
    'hunter2'.padEnd(64, '0'),
  ];

  test('is accepted in lowercase hex, in a variable and in the document', async () => {
    for (const answer of [
      await service.ask(IMPORT_VARIABLE, { variables: { value: DIGEST }, file: FILE }),
      await service.ask(IMPORT(JSON.stringify(DIGEST)), { file: FILE }),
    ]) {
      expect(answer.errors).toEqual([]);
      expect(answer.data).toEqual({
        importStateArchive: { userErrors: [{ code: 'ARCHIVE_DIGEST_MISMATCH' }] },
      });
    }
  });

  test.each([...refused, 7, ['a']])('%j is refused, and not repeated', async (value) => {
    const variable = await service.ask(IMPORT_VARIABLE, { variables: { value }, file: FILE });
    expect([variable.status, variable.denials]).toEqual([400, [': BAD_USER_INPUT']]);
    const literal = await service.ask(IMPORT(JSON.stringify(value)), { file: FILE });
    expect([literal.status, literal.denials]).toEqual([400, [': GRAPHQL_VALIDATION_FAILED']]);
    expect(variable.text + literal.text).not.toMatch(/hunter2|abab/i);
  });
});

describe('an Upload', () => {
  test.each(['hunter2', { name: 'hunter2' }, 7])(
    'that is %j in JSON is refused, and not repeated',
    async (file) => {
      const { status, denials, text } = await service.ask(IMPORT(JSON.stringify(DIGEST)), {
        variables: { file },
      });
      expect([status, denials]).toEqual([400, [': BAD_USER_INPUT']]);
      expect(text).not.toContain('hunter2');
    },
  );

  test('cannot be written in the document', async () => {
    const { status, denials, text } = await service.ask(
      'mutation { importStateArchive(input: { file: "hunter2" }) { userErrors { code } } }',
    );
    expect([status, denials]).toEqual([400, [': GRAPHQL_VALIDATION_FAILED']]);
    expect(text).not.toContain('hunter2');
  });
});

describe('values of other types', () => {
  const SNAPSHOT = `mutation ($input: ImportStateSnapshotInput!) {
    importStateSnapshot(input: $input) { userErrors { code } }
  }`;

  test.each([
    ['a document that is no text', { name: 'a', document: { password: 'hunter2' } }],
    ['a name that is no text', { name: ['hunter2'], document: '{}' }],
    ['a field that is missing', { document: 'hunter2' }],
    ['a field too many', { name: 'a', document: 'hunter2', extra: 'hunter2' }],
    ['no object', 'hunter2'],
  ])('with %s are refused, and not repeated', async (_name, input) => {
    const { status, denials, text } = await service.ask(SNAPSHOT, { variables: { input } });
    expect([status, denials]).toEqual([400, [': BAD_USER_INPUT']]);
    expect(text).not.toContain('hunter2');
  });

  test.each([
    '{ stateArchives(first: "hunter2") { nodes { id } } }',
    '{ stateArchives(first: 7777777777777) { nodes { id } } }',
    '{ stateArchive(name: { a: "hunter2" }) { id } }',
    '{ stateArchive(name: hunter2) { id } }',
    'mutation { importStateSnapshot(input: { name: "a", document: ["hunter2"] }) { userErrors { code } } }',
  ])('in the document are refused, and not repeated: %s', async (query) => {
    const { status, denials, text } = await service.ask(query);
    expect([status, denials]).toEqual([400, [': GRAPHQL_VALIDATION_FAILED']]);
    expect(text).not.toMatch(/hunter2|7777/);
  });
});
