import { addressOf, attributesHash, PROVIDER, resourceText, SCHEMA_VERSION } from './resource.ts';
import type { HistoryShape } from './shape.ts';
import { type Version, walkHistory, walkSpans } from './walk.ts';

/** The rows of a table, as pieces of what `copy … from stdin` takes. */
export interface TableRows {
  readonly table: string;
  readonly columns: readonly string[];
  readonly text: Iterable<string>;
}

export const STATE_ID = '5a000000-0000-4000-8000-000000000001';
const LINEAGE = '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10';
const TERRAFORM_VERSION = '1.11.4';
const ACTOR = 'ci/deploy';
const FIRST_POSTED = Date.UTC(2026, 0, 5, 9);
const BETWEEN_POSTS_MS = 15 * 60 * 1000;
const PLAIN_OUTPUTS = 10;
const BETWEEN_TAGS = 20;

/** Every row of a history in Kilolock's tables, parents first. The state bears the name of its shape. */
export function historyRows(shape: HistoryShape): TableRows[] {
  const serials = Array.from({ length: shape.versions }, (_, index) => index + 1);
  return [
    {
      table: 'states',
      columns: ['id', 'name', 'lineage', 'current_version_id', 'created_at', 'updated_at'],
      text: lines([
        [STATE_ID, shape.name, LINEAGE, versionId(shape.versions), postedAt(1), postedAt(shape.versions)],
      ]),
    },
    {
      table: 'state_versions',
      columns: [
        'id',
        'state_id',
        'serial',
        'terraform_version',
        'source',
        'created_at',
        'created_by',
        'raw_state',
      ],
      text: versionRows(shape),
    },
    {
      table: 'state_version_tags',
      columns: ['state_id', 'state_version_id', 'tag', 'description', 'actor', 'created_at', 'updated_at'],
      text: lines(
        serials
          .filter((serial) => serial % BETWEEN_TAGS === 0)
          .map((serial) => [
            STATE_ID,
            versionId(serial),
            `release-${serial}`,
            'as rolled out',
            ACTOR,
            postedAt(serial),
            postedAt(serial),
          ]),
      ),
    },
    {
      table: 'resources',
      columns: [
        'state_id',
        'address',
        'mode',
        'type',
        'name',
        'provider',
        'module_path',
        'index_kind',
        'index_value',
        'attributes',
        'dependencies_raw',
        'attributes_hash',
        'create_serial',
        'delete_serial',
        'created_at',
        'schema_version',
      ],
      text: lines(spanRows(shape)),
    },
    {
      table: 'outputs',
      columns: ['state_version_id', 'name', 'value', 'value_type', 'sensitive'],
      text: lines(serials.flatMap(outputRows)),
    },
    {
      table: 'events',
      columns: ['kind', 'state_id', 'state_version_id', 'actor', 'payload', 'created_at'],
      text: lines(
        serials.map((serial) => [
          'state_write',
          STATE_ID,
          versionId(serial),
          ACTOR,
          `{"serial": ${serial}, "source": "apply"}`,
          postedAt(serial),
        ]),
      ),
    },
  ];
}

/** The document of a version, as JSON text in pieces. */
export function* documentText({ serial, resources }: Version): Generator<string, void, void> {
  const outputs = outputsOf(serial).map(
    ({ name, value, type, sensitive }) =>
      `"${name}": {${sensitive ? '"sensitive": true, ' : ''}"type": ${type}, "value": ${value}}`,
  );
  yield `{"version": 4, "terraform_version": "${TERRAFORM_VERSION}", "serial": ${serial}, "lineage": "${LINEAGE}", "outputs": {${outputs.join(', ')}}, "resources": [`;
  for (const [position, resource] of resources.entries()) {
    if (position > 0) yield ', ';
    yield* resourceText(resource);
  }
  yield '], "check_results": null}';
}

function* versionRows(shape: HistoryShape): Generator<string, void, void> {
  for (const version of walkHistory(shape)) {
    const { serial } = version;
    yield `${[versionId(serial), STATE_ID, serial, TERRAFORM_VERSION, 'apply', postedAt(serial), ACTOR].join('\t')}\t`;
    for (const piece of documentText(version)) yield escaped(piece);
    yield '\n';
  }
}

type Value = string | number | boolean | null;

function* spanRows(shape: HistoryShape): Generator<Value[], void, void> {
  for (const { resource, instance, deleteSerial } of walkSpans(shape)) {
    yield [
      STATE_ID,
      addressOf(resource, instance),
      'managed',
      resource.type,
      resource.name,
      PROVIDER,
      resource.modulePath,
      instance.index === null ? 'none' : 'int',
      instance.index,
      instance.attributes,
      instance.dependencies,
      attributesHash(resource, instance),
      instance.createSerial,
      deleteSerial,
      postedAt(instance.createSerial),
      SCHEMA_VERSION,
    ];
  }
}

function outputRows(serial: number): Value[][] {
  return outputsOf(serial).map(({ name, value, type, sensitive }) => [
    versionId(serial),
    name,
    value,
    type,
    sensitive,
  ]);
}

interface Output {
  readonly name: string;
  /** JSON text, as the type is. */
  readonly value: string;
  readonly type: string;
  readonly sensitive: boolean;
}

function outputsOf(serial: number): Output[] {
  const plain = Array.from({ length: PLAIN_OUTPUTS }, (_, number) => ({
    name: `endpoint_${number}`,
    value: `"https://service-${number}.example.com"`,
    type: '"string"',
    sensitive: false,
  }));
  return [
    ...plain,
    { name: 'database_password', value: '"correct horse battery staple"', type: '"string"', sensitive: true },
    { name: 'revision', value: String(serial), type: '"number"', sensitive: false },
  ];
}

function versionId(serial: number): string {
  return `5b000000-0000-4000-8000-${String(serial).padStart(12, '0')}`;
}

function postedAt(serial: number): string {
  const time = new Date(FIRST_POSTED + serial * BETWEEN_POSTS_MS).toISOString();
  return time.replace('000Z', `${String((serial * 7919) % 1_000_000).padStart(6, '0')}Z`);
}

function* lines(rows: Iterable<readonly Value[]>): Generator<string, void, void> {
  for (const row of rows) {
    yield `${row.map((value) => (value === null ? '\\N' : escaped(String(value)))).join('\t')}\n`;
  }
}

/** No value of ours holds a tab or the end of a line. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\');
}
