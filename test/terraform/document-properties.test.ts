import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AttributesHasher } from '../../src/terraform/attributes-hash.ts';
import { DEFAULT_STATE_DOCUMENT_LIMITS, readStateDocument } from '../../src/terraform/document.ts';
import { UnsupportedStateDocumentError } from '../../src/terraform/errors.ts';
import { projectResources } from '../../src/terraform/projection.ts';
import { resourceText, stateText } from './state-text.ts';
import { laidOut } from './support/laid-out.ts';

/** A JSON value, and the same value spelled in one of the many ways that JSON allows. */
const spelledJson = fc
  .tuple(
    fc.jsonValue({ stringUnit: 'binary', maxDepth: 4 }),
    fc.array(fc.nat(99), { minLength: 50, maxLength: 50 }),
  )
  .map(([value, choices]) => ({ value, text: spell(value, choices) }))
  .filter(({ value }) => !hasUnstorableString(value));

function hasUnstorableString(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0') || !value.isWellFormed();
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).flat().some(hasUnstorableString);
}

function spell(value: unknown, choices: readonly number[]): string {
  let next = 0;
  const choose = () => choices[next++ % choices.length] ?? 0;
  const space = () => ['', '', ' ', '\n  ', '\t', '\r\n'][choose() % 6] ?? '';
  const list = (items: string[]) => items.map((item) => space() + item + space()).join(',') || space();
  const string = (text: string) =>
    `"${Array.from(
      JSON.stringify(text)
        .slice(1, -1)
        .matchAll(/\\u....|\\.|[^\\]/gsu),
      ([piece]) => {
        if (piece.startsWith('\\')) return piece;
        if (piece === '/' && choose() % 2 === 0) return '\\/';
        if (choose() % 8 > 0) return piece;
        return piece
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join('');
      },
    ).join('')}"`;
  const write = (part: unknown): string => {
    if (typeof part === 'string') return string(part);
    if (Array.isArray(part)) return `[${list(part.map(write))}]`;
    if (typeof part === 'object' && part !== null) {
      const members = Object.entries(part);
      if (choose() % 2 === 0) members.reverse();
      return `{${list(members.map(([key, member]) => `${string(key)}${space()}:${space()}${write(member)}`))}}`;
    }
    return JSON.stringify(part);
  };
  return write(value);
}

function render(text: Buffer): string {
  return laidOut((layout) => layout.render(text));
}

describe('any JSON value in any spelling', () => {
  test('is accepted as attributes, sensitive paths, output and unknown member, and handed out byte for byte', () => {
    fc.assert(
      fc.property(spelledJson, spelledJson, ({ text }, other) => {
        const document = readStateDocument(
          Buffer.from(
            stateText(
              `{"attributes":${text} ,"deposed": ${text},"sensitive_attributes": ${other.text}}`,
              `, "outputs": {"o": {"value":${other.text},"type": ${text}}}, "unknown": ${text}`,
            ),
          ),
        );
        const [instance] = document.instances();
        expect(instance?.attributes.toString()).toBe(text);
        expect(instance?.sensitivePaths.toString()).toBe(other.text);
        expect([...document.outputs()]).toHaveLength(1);
      }),
    );
  });

  test('has one form in the layout of Terraform, which is the same value and does not change again', () => {
    fc.assert(
      fc.property(
        spelledJson,
        fc.array(fc.nat(99), { minLength: 50, maxLength: 50 }),
        ({ value, text }, choices) => {
          const rendered = render(Buffer.from(text));
          expect(isDeepStrictEqual(JSON.parse(rendered), JSON.parse(text))).toBe(true);
          expect(render(Buffer.from(spell(value, choices)))).toBe(rendered);
          expect(render(Buffer.from(rendered))).toBe(rendered);
        },
      ),
    );
  });
});

describe('damage', () => {
  const good = Buffer.from(
    `{"version": 4, "terraform_version": "1.9.8", "serial": 12, "lineage": "7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10",
      "outputs": {"o": {"value": [1.5e3, "\\ud83d\\ude80"], "type": ["list", "number"], "sensitive": true}}, "resources": [
      ${resourceText('{"index_key": "a\\u00e9", "schema_version": 1, "attributes": {"a": {"type": "string", "value": "é"}}, "dependencies": ["x.y"]}', '{"index_key": 0, "deposed": "00000000", "sensitive_attributes": [[{"type": "get_attr"}]]}')}]}`,
  );
  const edits = fc.array(
    fc.tuple(
      fc.nat(good.length - 1),
      fc.nat(3),
      fc.oneof(fc.constantFrom(...Buffer.from('{}[],:"\\0-.eu \n')), fc.nat(255)),
    ),
    { minLength: 1, maxLength: 4 },
  );
  const damaged = edits.map((list) =>
    list.reduce(
      (bytes, [at, removed, byte]) =>
        Buffer.concat([bytes.subarray(0, at), Buffer.from([byte]), bytes.subarray(at + removed)]),
      good,
    ),
  );

  test('ends in a document that can be read to its end, or in UnsupportedStateDocumentError, never else', () => {
    fc.assert(
      fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 200 }).map(Buffer.from)), (bytes) => {
        try {
          const document = readStateDocument(bytes);
          projectResources(document, new AttributesHasher('as-written'));
          projectResources(document, new AttributesHasher('terraform'));
          void [...document.outputs()];
        } catch (error) {
          expect(error).toBeInstanceOf(UnsupportedStateDocumentError);
        }
      }),
      { numRuns: 3000 },
    );
  });

  test('leaves nothing accepted that the JSON parser of the platform refuses', () => {
    fc.assert(
      fc.property(damaged, (bytes) => {
        try {
          readStateDocument(bytes);
        } catch {
          return;
        }
        expect(() =>
          JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)),
        ).not.toThrow();
      }),
      { numRuns: 3000 },
    );
  });

  test('in a member that nobody knows is found where the JSON parser of the platform finds it', () => {
    const text = fc
      .tuple(spelledJson, fc.nat(), fc.constantFrom(...'{}[],:"\\0-.eE+ \ntrufalsn'))
      .map(([{ text }, at, character]) => {
        const position = at % (text.length + 1);
        return text.slice(0, position) + character + text.slice(position + (at % 2));
      })
      // What is JSON but not storable is no question here.
      .filter((text) => !/\\u(?:0000|d[89a-f])|e[+-]?\d{5}/i.test(text) && text.isWellFormed());
    fc.assert(
      fc.property(text, (member) => {
        const document = `{"version": 4, "serial": 1, "unknown": ${member}}`;
        expect(isAccepted(document)).toBe(isJson(document));
      }),
      { numRuns: 2000 },
    );
  });

  function isJson(text: string): boolean {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  }

  function isAccepted(text: string): boolean {
    try {
      readStateDocument(Buffer.from(text), { ...DEFAULT_STATE_DOCUMENT_LIMITS, maxExpandedDigits: 100_000 });
      return true;
    } catch (error) {
      if (error instanceof UnsupportedStateDocumentError) return false;
      throw error;
    }
  }
});
