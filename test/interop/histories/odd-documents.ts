/** A document that hardly anybody writes, as text: some of it cannot be said in JavaScript. */
export interface OddDocument {
  /** What is odd about it. */
  readonly what: string;
  /** The document, with a value in it that tells one version from another. */
  readonly text: (lineage: string, value: string) => string;
}

/** Nothing is odd about it. */
export function ordinaryDocument(lineage: string, value: string): string {
  return document(lineage, {
    outputs: `{"o":{"value":"${value}","type":"string"}}`,
    resources: `${resource('plain', instance(value))},${resource('kept', instance('x'))}`,
  });
}

/** Kilolock takes these: its parser, Go's encoding/json, decides. */
export const oddDocuments: readonly OddDocument[] = [
  odd('a resource that is null', (value) => ({ resources: `null,${plain(value)}` })),
  odd('an instance that is null', (value) => ({ resources: `${resource('n', 'null')},${plain(value)}` })),
  odd('an output that is null', (value) => ({ outputs: '{"o":null}', resources: plain(value) })),
  odd('outputs that are null', (value) => ({ outputs: 'null', resources: plain(value) })),
  odd('lists of an instance that are null', (value) => ({
    resources: resource('n', instance(value, '"dependencies":null,"sensitive_attributes":null')),
  })),
  odd('attributes that are null or absent', (value) => ({
    resources: `${resource('n', '{"attributes":null}')},${resource('a', '{}')},${plain(value)}`,
  })),
  {
    what: 'keys in another case',
    text: (lineage, value) =>
      document(lineage, { outputs: '{"o":{"Value":1,"TYPE":"number"}}', resources: plain(value) })
        .replace('"resources"', '"Resources"')
        .replace('"mode"', '"MODE"')
        .replace('"provider"', '"Provider"')
        .replace('"instances"', '"inStances"')
        .replace('"schema_version"', '"SCHEMA_VERSION"')
        .replace('"attributes"', '"Attributes"'),
  },
  odd('nesting 600 deep', (value) => nested(600, value)),
  odd('nesting 3 000 deep', (value) => nested(3000, value)),
  odd('numbers of 1 200 digits', (value) => ({
    resources: resource('n', `{"attributes":{"id":"${value}","n":${'1234567890'.repeat(120)}}}`),
  })),
  odd('keys that look like numbers', (value) => ({
    resources: resource(
      'n',
      ['-0', '0', '007', '1e3', '9223372036854775807', '9223372036854775808', '']
        .map((key) => instance(value, `"index_key":"${key}"`))
        .join(','),
    ),
  })),
  odd('a deposed object and no current one', (value) => ({
    resources: `${resource('n', instance(value, '"deposed":"abcd1234"'))},${plain(value)}`,
  })),
  odd('one address twice', (value) => ({
    resources: `${resource('n', `${instance('first')},${instance(value)}`)},${plain(value)}`,
  })),
];

/** Kilolock refuses these. */
export const REFUSED_DOCUMENTS: readonly OddDocument[] = [
  odd('private data that is an object', (value) => ({
    resources: resource('n', instance(value, '"private":{}')),
  })),
  odd('create_before_destroy that is a text', (value) => ({
    resources: resource('n', instance(value, '"create_before_destroy":"yes"')),
  })),
  odd('a resource that is a number', (value) => ({ resources: `1,${plain(value)}` })),
  {
    what: 'a serial that is a fraction',
    text: (lineage) => document(lineage, {}).replace('"serial":1', '"serial":1.5'),
  },
];

/** What a document is made of: the outputs as JSON, and the resources as members of a list. */
interface Contents {
  readonly outputs?: string;
  readonly resources?: string;
}

function odd(what: string, contents: (value: string) => Contents): OddDocument {
  return { what, text: (lineage, value) => document(lineage, contents(value)) };
}

function document(lineage: string, { outputs = '{}', resources = '' }: Contents): string {
  return (
    `{"version":4,"terraform_version":"1.9.5","serial":1,"lineage":"${lineage}",` +
    `"outputs":${outputs},"resources":[${resources}]}`
  );
}

function resource(name: string, instances: string): string {
  const provider = 'provider[\\"x/y/z\\"]';
  return `{"mode":"managed","type":"t","name":"${name}","provider":"${provider}","instances":[${instances}]}`;
}

function instance(value: string, more?: string): string {
  const rest = more === undefined ? '' : `,${more}`;
  return `{"schema_version":1,"attributes":{"id":"${value}"}${rest}}`;
}

function plain(value: string): string {
  return resource('plain', instance(value));
}

function nested(depth: number, value: string): Contents {
  const lists = `${'['.repeat(depth)}"${value}"${']'.repeat(depth)}`;
  return { outputs: `{"deep":{"value":${lists},"type":"dynamic"}}`, resources: plain(value) };
}
