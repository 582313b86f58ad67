import { expect, it } from '@jest/globals';
import { z } from 'zod';
import { serial } from '../../src/archive/fields.ts';
import { list, optional, record } from '../../src/archive/record-form.ts';

const part = record({ b_serial: serial.nullable(), a: z.string() });
const whole = record({ part, parts: list(part), some_hint: optional(z.int()) });

const value = {
  part: { bSerial: 9007199254740993n, a: '' },
  parts: [{ bSerial: null, a: 'é' }],
  someHint: 7,
};
const json = {
  part: { a: '', b_serial: '9007199254740993' },
  parts: [{ a: 'é', b_serial: null }],
  some_hint: 7,
};

it('reads what it writes', () => {
  expect(whole.encode(value)).toEqual(json);
  expect(whole.schema.parse(json)).toEqual(value);
});

it('writes keys in their order, whatever the order of the declaration and of the value', () => {
  expect(JSON.stringify(whole.encode(value))).toBe(JSON.stringify(json));
});

it('writes no field that is not declared', () => {
  const more = { ...value, digest: 'x', part: { ...value.part, digest: 'y' } };
  expect(whole.encode(more)).toEqual(json);
});

it('leaves out what is not declared, and counts it at every depth', () => {
  const later = {
    ...json,
    novelty: { a: 1, part: 2 },
    part: { ...json.part, toString: 1 },
    parts: [...json.parts, { ...json.parts[0], constructor: null, x: [] }],
  };
  expect(whole.schema.parse(later)).toEqual({ ...value, parts: [...value.parts, ...value.parts] });
  expect(whole.unknownFields(later)).toBe(4);
  expect(whole.unknownFields(json)).toBe(0);
});

it('takes an optional field that is absent as null, writes null as absent, and takes no null for it', () => {
  const { some_hint: _, ...without } = json;
  expect(whole.schema.parse(without)).toEqual({ ...value, someHint: null });
  expect(JSON.parse(JSON.stringify(whole.encode({ ...value, someHint: null })))).toEqual(without);
  expect(whole.schema.safeParse({ ...json, some_hint: null }).success).toBe(false);
});

it('says where the first fault stands, by its name in JSON', () => {
  const { error } = whole.schema.safeParse({ ...json, parts: [{ a: 'é', b_serial: '9223372036854775807' }] });
  expect(error?.issues[0]).toMatchObject({
    path: ['parts', 0, 'b_serial'],
    message: 'is a serial above 2^63 - 2',
  });
});
