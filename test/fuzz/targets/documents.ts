import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { writeArchive } from '../../../src/archive/writer.ts';
import { readStateDocument } from '../../../src/terraform/document.ts';
import { UnsupportedStateDocumentError } from '../../../src/terraform/errors.ts';
import { archiveContents, each } from '../../archive/support/build-archive.ts';
import { type Choices, choices } from '../../support/choices.ts';
import { loadTerraformHistory } from '../../support/fixtures.ts';
import type { FuzzTarget } from '../target.ts';
import { openImportVerdicts } from './import-verdicts.ts';
import { damagedBytes, damagedJson, oddJson } from './odd-json.ts';

const LINEAGE = '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10';
const REAL = loadTerraformHistory().map(({ document }) => document);

function build(choice: Choices): Buffer {
  let text = choice.once(3) ? choice.of(REAL) : written(choice);
  for (const _ of choice.some(3, () => null)) text = damagedJson(text, choice);
  const bytes = Buffer.from(text);
  return choice.once(15) ? damagedBytes(bytes, choice) : bytes;
}

/** A document with something odd in every place that is read. */
function written(choice: Choices): string {
  const odd = (usual: string) => (choice.once(7) ? oddJson(choice) : usual);
  const member = (key: string, usual: string) => {
    if (choice.once(12)) return '';
    const spelt = choice.once(15) ? key.toUpperCase() : choice.once(15) ? `${key}x` : key;
    return `"${spelt}": ${odd(usual)}`;
  };
  const object = (...members: string[]) => `{${members.filter((each) => each !== '').join(', ')}}`;
  const list = (items: readonly string[]) => `[${items.join(', ')}]`;

  const instance = () =>
    object(
      choice.once(3)
        ? member(
            'index_key',
            choice.of(['0', '1', '-0', '"a"', '"a\\"b"', '"0"', '1.0', '1e0', '"$' + '{x}"']),
          )
        : '',
      choice.once(6) ? member('deposed', '"00000001"') : '',
      member('schema_version', '0'),
      member(
        'attributes',
        object(
          member('id', '"i-1"'),
          member('size', '1.50'),
          choice.once(3) ? member('a', '{"b": [1, "é", null]}') : '',
        ),
      ),
      choice.once(4) ? member('attributes_flat', '{"id": "x"}') : '',
      choice.once(3) ? member('sensitive_attributes', '[[{"type": "get_attr", "value": "id"}]]') : '',
      choice.once(3) ? member('private', '"bnVsbA=="') : '',
      choice.once(3) ? member('dependencies', '["thing.a", "data.thing.b"]') : '',
      choice.once(4) ? member('create_before_destroy', 'true') : '',
    );
  const resource = () =>
    object(
      choice.once(3)
        ? member('module', choice.of(['"module.m"', '"module.m[0]"', '"module.m[\\"k\\"].module.n"', '""']))
        : '',
      member('mode', choice.of(['"managed"', '"data"'])),
      member('type', choice.of(['"thing"', '"aws_instance"'])),
      member('name', choice.of(['"a"', '"b"', '"é"'])),
      member('provider', '"provider[\\"registry.terraform.io/hashicorp/null\\"]"'),
      choice.once(5) ? member('each', '"list"') : '',
      member('instances', list(choice.some(3, () => odd(instance())))),
    );
  const output = () =>
    member(
      choice.of(['o', 'p', '', 'é']),
      object(
        member('value', odd('"v"')),
        member(
          'type',
          choice.of(['"string"', '["list", "string"]', '["object", {"a": "number"}]', '"dynamic"']),
        ),
        choice.once(3) ? member('sensitive', 'true') : '',
      ),
    );
  return object(
    member('version', '4'),
    member('serial', '1'),
    choice.once(3) ? '' : `"lineage": "${LINEAGE}"`,
    member('terraform_version', '"1.9.8"'),
    member('outputs', object(...choice.some(2, output))),
    member('resources', list(choice.some(3, () => odd(resource())))),
    choice.once(5) ? member('check_results', 'null') : '',
  );
}

function reads(document: Buffer): boolean {
  try {
    readStateDocument(document);
    return true;
  } catch (error) {
    if (error instanceof UnsupportedStateDocumentError) return false;
    throw error;
  }
}

/** State documents: read, or refused in the same words by the dry run and the import. */
export const documentsTarget: FuzzTarget<Buffer> = {
  name: 'documents',
  inputs: choices(150).map(build),
  encode: (input) => input,
  decode: (file) => file,
  runsInSuite: 30,
  async open() {
    const verdicts = await openImportVerdicts();
    return {
      async check(document) {
        const isRead = reads(document);
        if (!goesTheWholeWay(document, isRead)) return;
        const contents = archiveContents({
          state: { lineage: LINEAGE },
          versions: [{ serial: 1n, rawState: '' }],
        });
        const rawStates = each([{ serial: 1n, byteLength: document.length, content: each([document]) }]);
        await writeArchive({ ...contents, resources: null, rawStates }, verdicts.path);
        const refusal = await verdicts.verdict();
        await rm(verdicts.path);
        if (!isRead && refusal === null) throw new Error('It was imported although it cannot be read.');
      },
      close: () => verdicts.close(),
    };
  },
};

/** An archive and two imports take a hundred times as long as the rest; always the same documents go through them. */
function goesTheWholeWay(document: Buffer, isRead: boolean): boolean {
  const draw = createHash('sha256').update(document).digest().readUInt8();
  return draw < (isRead ? 64 : 12);
}
