import { describe, expect, it } from '@jest/globals';
import { readStateDocument } from '../../src/terraform/document.ts';
import { redactState } from '../../src/terraform/redaction.ts';

/** The text of a state without what is sensitive in it, which is a good document still. */
function redacted(text: string): string {
  const bytes = Buffer.from(text);
  const { content, byteLength, count } = redactState(readStateDocument(bytes));
  const result = Buffer.concat([...content]);
  expect(result.length).toBe(byteLength);
  expect(bytes.toString()).toBe(text);
  readStateDocument(result);
  expect(count === 0).toBe(result.equals(bytes));
  return result.toString();
}

/** A state with one instance, with these members in it. */
function stateWith(instance: string, type = 'aws_db_instance', beside = ''): string {
  return `{"version": 4, "serial": 7, "lineage": "", "outputs": {}, "resources": [
    {"mode": "managed", "type": "${type}", "name": "main", "provider": "p", "instances": [{"schema_version": 1, ${instance}}]}
  ]${beside}}`;
}

/** What `sensitive_attributes` says of paths whose steps are names, and numbers of elements. */
function marked(...paths: readonly (readonly (string | number)[])[]): string {
  return JSON.stringify(
    paths.map((path) =>
      path.map((step) =>
        typeof step === 'string'
          ? { type: 'get_attr', value: step }
          : { type: 'index', value: { value: step, type: 'number' } },
      ),
    ),
  );
}

const GONE = '"(redacted)"';

describe('what is taken out of a state', () => {
  it.each([
    ['a text', '"hunter2"'],
    ['a text with escapes', '"hun\\"ter\\\\2"'],
    ['a number', '12345678901234567890.50'],
    ['a literal', 'true'],
    ['a list', '["hunter2", {"a": [1]}]'],
    ['a map', '{"k": "hunter2]}"}'],
    ['null, for that there was none tells something too', 'null'],
  ])('is an attribute that is marked: %s', (_, value) => {
    const state = (v: string) =>
      stateWith(`"attributes": {"id": 1.10, "x": ${v} , "y" :2}, "sensitive_attributes": ${marked(['x'])}`);
    expect(redacted(state(value))).toBe(state(GONE));
  });

  it('is what is marked below an attribute, and nothing beside it', () => {
    const state = (a: string, b: string, c: string) =>
      stateWith(
        `"sensitive_attributes": ${marked(['list', 1, 'x'], ['map', 'k'], ['gone'])},
         "attributes": {"list": [{"x": 1}, {"x": ${a}, "y": 2}], "map": {"j": 3, "k": ${b}}, "gone": ${c}}`,
      );
    expect(redacted(state('"s"', '{"deep": 1}', '[]'))).toBe(state(GONE, GONE, GONE));
  });

  it('is what is called like a secret, and all of a resource that is', () => {
    const named = (v: string) => stateWith(`"attributes": {"a": {"master_Password": ${v}, "port": 1}}`);
    expect(redacted(named('"s"'))).toBe(named(GONE));
    const typed = (v: string, w: string) =>
      stateWith(`"attributes": {"id": ${v}, "list": ${w}}`, 'aws_secretsmanager_secret_version');
    expect(redacted(typed('"s"', '[1]'))).toBe(typed(GONE, GONE));
  });

  it('is the value of an output that is sensitive, wherever that stands, or is called like a secret', () => {
    const state = (a: string, b: string, c: string) =>
      `{"version": 4, "serial": 7, "lineage": "", "resources": [], "outputs": {
        "one": {"value": ${a}, "type": "string", "sensitive": true}, "two": {"sensitive": true, "value": ${b}, "type": "string"},
        "db_password": {"value": ${c}, "type": "string"}, "port": {"value": 5432, "type": "number", "sensitive": false}}}`;
    expect(redacted(state('"s"', '["s"]', '1e400'))).toBe(state(GONE, GONE, GONE));
  });

  it('is the private data of a provider, and attributes in the form of old', () => {
    const state = (a: string, b: string) => stateWith(`"private": ${a}, "attributes_flat": ${b}`);
    expect(redacted(state('"czNjcmV0"', '{"x": "s"}'))).toBe(state('""', '{}'));
    expect(redacted(state('null', 'null'))).toBe(state('null', 'null'));
  });

  it('is all of an instance whose marks are of no known form', () => {
    const state = (marks: string, v: string) =>
      stateWith(`"attributes": {"x": ${v}, "y": ${v}}, "sensitive_attributes": ${marks}`);
    for (const marks of ['[[]]', '[[{"type": "get_attr"}]]', '["x"]', '[[{"value": {"value": null}}]]']) {
      expect(redacted(state(marks, '1'))).toBe(state(marks, GONE));
    }
  });

  it('is every one of several members of one name, whatever the case of a key', () => {
    const state = (v: string) =>
      stateWith(
        `"attributes": {"x": ${v}, "x": ${v}}, "Sensitive_Attributes": ${marked(['x'])}, "attributes": {"x": ${v}}`,
      );
    expect(redacted(state('"s"'))).toBe(state(GONE));
  });

  it('is what is nested deeper than any attribute', () => {
    const deep = `${'['.repeat(600)}"s"${']'.repeat(600)}`;
    const text = redacted(stateWith(`"attributes": {"x": ${deep}}`));
    expect(text).not.toContain('"s"');
    expect(text).toContain(GONE);
  });
});

it('a state with nothing sensitive in it is left as it is, byte for byte', () => {
  const state = stateWith(
    `"attributes": {"id": "é\\u00e9", "n": 18446744073709551615, "f": 1.10, "o": {}, "l": [ ]}, "dependencies": ["a.b"]`,
    'aws_vpc',
    ', "check_results": null ,  "x": [1 , 2]',
  );
  expect(redacted(state)).toBe(state);
});
