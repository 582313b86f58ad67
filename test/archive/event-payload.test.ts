import { describe, expect, it } from '@jest/globals';
import { MAX_PAYLOAD_BYTES, membersOf, payloadFault } from '../../src/archive/event-payload.ts';

const NOT_JSON = 'is not JSON text';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('a payload', () => {
  const sample =
    ' {"a": [1, -2.50e+1, true, {}, [ ]], "\\u00e9\\\\\\"/": {"b": null, "c": "d\\n", "é": false}}\n';

  it('is JSON where JSON.parse says so, whatever one character more or less makes of it', () => {
    const told = (text: string) => payloadFault(text) !== NOT_JSON;
    const wrong: string[] = [];
    for (let at = 0; at <= sample.length; at++) {
      const [before, after] = [sample.slice(0, at), sample.slice(at)];
      const texts = [before, after, before + after.slice(1), before + sample.charAt(at) + after];
      for (const more of '"\\{}[],:eu+-.01 \t\n\u00a0\0x') texts.push(before + more + after);
      wrong.push(...texts.filter((text) => told(text) !== isJson(text)));
    }
    expect(wrong).toEqual([]);
    expect(payloadFault(sample)).toBeNull();
  });

  it.each([
    '',
    ' ',
    '01',
    '-',
    '1.',
    '.5',
    '1e',
    '1e+',
    '+1',
    'NaN',
    'nul',
    '"\\u12  "',
    '"\\u12',
    '"\\',
    '{}{}',
  ])('is not JSON: %j', (text) => {
    expect(payloadFault(text)).toBe(NOT_JSON);
  });

  it.each(['"\\\\u0000"', '"\\ud83d\\ude00"', '"\\uD83D\\uDE00"', '-0', '0e5', '1E131071', '1e-16383'])(
    'is storable: %j',
    (text) => {
      expect(payloadFault(text)).toBeNull();
    },
  );

  it.each(['"\\ude00\\ud83d"', '"\\ud83d\\\\ude00"', '"\\ud83d\\n"', '{"\\ud83d": 1}'])(
    'holds half of a surrogate pair: %j',
    (text) => {
      expect(payloadFault(text)).toMatch(/half of a surrogate pair/);
    },
  );

  it('has the length that jsonb prints, to the byte, and room for the mark of a restore unless it is marked', () => {
    const filled = (bytes: number, more = '') => {
      const text = `{${more}"é": "", "n": -1.50e1}`;
      // jsonb prints -15.0, which is two bytes less.
      return text.replace('""', `"${'x'.repeat(bytes - Buffer.byteLength(text) + 2)}"`);
    };
    const spaced = (text: string) => text.replaceAll(',', '\n ,\t ').replace('{', ' { ');
    const mark = `"restored_by_import": "${'0'.repeat(36)}", `;
    for (const [most, more] of [
      [MAX_PAYLOAD_BYTES - 128, ''],
      [MAX_PAYLOAD_BYTES, mark],
    ] as const) {
      expect(payloadFault(spaced(filled(most, more)))).toBeNull();
      expect(payloadFault(spaced(filled(most + 1, more)))).toMatch(/more than 4194304 bytes/);
    }
  });

  it('gives its members as they are spelled, repeated ones included', () => {
    const text = ' { "a" : [1, {"b": 2}] , "\\u0061":{} ,"c": -1e5\n} ';
    const values = membersOf(text).map(({ key, value }) => [key, value]);
    expect(values).toEqual([
      ['a', '[1, {"b": 2}]'],
      ['a', '{}'],
      ['c', '-1e5'],
    ]);
    expect(membersOf('[{"a": 1}]')).toEqual([]);
    expect(membersOf('{}')).toEqual([]);
  });
});
