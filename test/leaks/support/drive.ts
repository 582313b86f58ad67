import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { buildArchive } from '../../archive/support/build-archive.ts';
import { loadTerraformHistory } from '../../support/fixtures.ts';
import { multipartForm } from '../../support/multipart-form.ts';
import type { SecretWatch } from './secrets.ts';

/** A running service, and the ways into it that a run needs. */
export interface Target {
  readonly url: string;
  /** Every scope. */
  readonly token: string;
  /** Runs SQL on the service's database. */
  readonly sql: (text: string) => Promise<unknown>;
  /** A directory of the run's own, to build archives in. */
  readonly directory: string;
  readonly watch: SecretWatch;
}

/** What was done, by its name: the code it was answered with, `ok`, or the HTTP status. */
export type Outcomes = Readonly<Record<string, string>>;

interface Request {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly authorization?: string;
  readonly file?: Uint8Array<ArrayBuffer>;
  readonly mayHold?: readonly string[];
}

const RAW_STATE = 'a value of a state';
const LINK = 'a link';

const EXPORT = `mutation ($name: String!) { exportStateArchive(input: { name: $name }) {
  operation { id status archive { downloadUrl } error { code message } } userErrors { code message path } } }`;
const IMPORT = `mutation ($file: Upload!, $name: String!, $dryRun: Boolean!) {
  importStateArchive(input: { file: $file, name: $name, dryRun: $dryRun, allowSharedLineage: true }) {
    operation { id status report { warnings { code message } } error { code message path } }
    userErrors { code message path } } }`;
const SNAPSHOT = `mutation ($name: String!, $document: String, $file: Upload) {
  importStateSnapshot(input: { name: $name, document: $document, file: $file }) {
    version { serial } userErrors { code message path } } }`;

/**
 * Takes a service through everything it does, well and badly, with secrets planted in all that it is given, and notes all it
 * answers. Every planted secret is one that must not come back, but where the name of the kind says.
 */
export async function drive({ url, token, sql, directory, watch }: Target): Promise<Outcomes> {
  const outcomes: Record<string, string> = {};
  const inState = watch.add(RAW_STATE, 'hunter2-not-real');
  const planted = watch.plant('a value in a document');
  const literal = watch.plant('a literal');
  const variable = watch.plant('a variable');
  watch.add('the token', token);

  async function request(name: string, path: string, init: RequestInit, mayHold: readonly string[] = []) {
    const response = await fetch(path.startsWith('http') ? path : url + path, init);
    const bytes = Buffer.from(await response.arrayBuffer());
    const isFile = response.headers.get('content-type')?.includes('zstd') ?? false;
    watch.note(`the headers of ${name}`, JSON.stringify([...response.headers]));
    if (!isFile) watch.note(`the answer to ${name}`, bytes.toString(), mayHold);
    return { status: response.status, bytes };
  }

  async function ask(name: string, { query, variables = {}, authorization, file, mayHold }: Request) {
    const form = multipartForm(query, variables, file && { bytes: file, name: 'state.klstate' });
    const { bytes, status } = await request(
      name,
      '/graphql',
      {
        method: 'POST',
        headers: {
          authorization: authorization ?? `Bearer ${token}`,
          'apollo-require-preflight': '1',
          ...(file === undefined && { 'content-type': 'application/json' }),
        },
        body: file === undefined ? JSON.stringify({ query, variables }) : form,
      },
      mayHold,
    );
    const answer = JSON.parse(bytes.toString());
    const [payload] = Object.values<Record<string, unknown> | null>(answer.data ?? {});
    const [userError] = (payload?.userErrors as { code: string }[] | undefined) ?? [];
    outcomes[name] =
      answer.errors?.[0].extensions.code ?? userError?.code ?? (status === 200 ? 'ok' : String(status));
    return payload ?? {};
  }

  const post = (name: string, label: string, document: string) =>
    ask(name, { query: SNAPSHOT, variables: { name: label, document } });
  const restore = (name: string, file: Buffer<ArrayBuffer>, variables: object = {}) =>
    ask(name, {
      query: IMPORT,
      file,
      variables: { name: `restored/${name.replaceAll(' ', '-')}`, dryRun: false, ...variables },
    });

  // Snapshots: a real history, by variable, by literal, as a file; and documents that are none.
  for (const { document, serial } of loadTerraformHistory().slice(0, 3)) {
    await post(`snapshot ${serial}`, 'secret/app', document);
  }
  const document = stateDocument(planted);
  await ask('snapshot by literal', {
    query: `mutation { importStateSnapshot(input: { name: "secret/literal", document: ${JSON.stringify(document)} }) { userErrors { code } } }`,
  });
  await ask('snapshot by file', {
    query: SNAPSHOT,
    variables: { name: 'secret/file' },
    file: Buffer.from(document),
  });
  for (const [name, text] of [
    ['snapshot that is no JSON', `{"version":4,"secret":${planted}}`],
    ['snapshot that ends early', document.slice(0, -4)],
    ['snapshot of another shape', JSON.stringify([planted])],
    ['snapshot with a NUL', document.replace(planted, `${planted}\\u0000`)],
    ['snapshot with an endless number', document.replace(`"${planted}"`, `{"${planted}":1e999999}`)],
    ['snapshot with half a character', document.replace(planted, `${planted}\\ud800`)],
  ] as const) {
    await post(name, 'secret/bad', text);
  }

  // Documents and variables that GraphQL refuses, with values in every place one can stand. What is a name to GraphQL, of a
  // field or a variable, may be named.
  const values = [`"${literal}"`, `"""${literal}"""`, literal, `["${literal}"]`, `{ a: "${literal}" }`];
  for (const value of values) {
    for (const [index, query] of [
      `{ stateArchives(first: ${value}) { nodes { id } } }`,
      `{ stateArchives(after: ${value}) { nodes { id } } }`,
      `{ stateArchive(name: ${value}, scope: ${value}) { version(serial: ${value}) { id } } }`,
      `{ stateArchiveOperation(id: ${value}) { versionMapping(after: ${value}) { nodes { serial } } } }`,
      `{ stateArchive(name: "secret/app" ${value}) { id } }`,
      `{ stateArchive(name: "secret/app") { id @include(if: ${value}) } }`,
      `{ _entities(representations: ${value}) { __typename } }`,
      `mutation { exportStateArchive(input: ${value}) { userErrors { code } } }`,
      `mutation { importStateSnapshot(input: { name: "x", document: ${value}, source: ${value} }) { userErrors { code message } } }`,
      `mutation { importStateArchive(input: { file: ${value}, onConflict: ${value}, expectedSha256: ${value} }) { userErrors { code } } }`,
      `query ($a: Int = ${value}) { stateArchives(first: $a) { nodes { id } } }`,
    ].entries()) {
      await ask(`literal ${index} ${values.indexOf(value)}`, {
        query,
      });
    }
  }
  for (const text of [
    `{ a(b: "${literal}`,
    `{ a(b: "\\u{${literal}}") }`,
    `{ a(b: "\\${literal}") }`,
    `{ a(b: 1${literal}) }`,
    `"${literal}" { a }`,
    `# ${literal}\n{`,
  ]) {
    await ask(`syntax ${text.slice(0, 12)}`, { query: text });
  }
  for (const value of [
    variable,
    [variable],
    { [`${variable}!`]: variable },
    { name: variable },
    { a: { b: variable } },
  ]) {
    for (const [type, use] of [
      ['Int', '{ stateArchives(first: $v) { nodes { id } } }'],
      ['BigInt!', '{ stateArchive(name: "secret/app") { version(serial: $v) { id } } }'],
      ['String', '{ stateArchives(after: $v) { nodes { id } } }'],
      ['String!', '{ stateArchive(name: $v) { id } }'],
      ['StateScopeInput', '{ stateArchives(scope: $v) { nodes { id } } }'],
      ['StateArchiveFilter', '{ stateArchives(filter: $v) { nodes { id } } }'],
      ['[_Any!]!', '{ _entities(representations: $v) { __typename } }'],
      [
        'ExportStateArchiveInput!',
        'mutation ($v: ExportStateArchiveInput!) { exportStateArchive(input: $v) { userErrors { code } } }',
      ],
      [
        'ImportStateArchiveInput!',
        'mutation ($v: ImportStateArchiveInput!) { importStateArchive(input: $v) { userErrors { code } } }',
      ],
      [
        'StateArchiveConflictPolicy!',
        'mutation ($v: StateArchiveConflictPolicy!, $file: Upload!) { importStateArchive(input: { file: $file, onConflict: $v }) { userErrors { code } } }',
      ],
    ] as const) {
      const query = use.startsWith('mutation') ? use : `query ($v: ${type}) ${use}`;
      await ask(`variable ${type} ${typeof value}`, { query, variables: { v: value } });
    }
  }
  await request('a body that is no JSON', '/graphql', {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: `{"query": "${literal}`,
  });

  // Credentials that are not accepted, and links that lead nowhere.
  const [head = '', claims = '', signature = ''] = token.split('.');
  for (const [name, credential] of [
    ['a token of no kind', watch.plant('a bad token')],
    [
      'a token with another signature',
      watch.add('a forged token', `${head}.${claims}.${[...signature].reverse().join('')}`),
    ],
    [
      'an unsigned token',
      watch.add('an unsigned token', `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.`),
    ],
  ] as const) {
    await ask(name, { query: '{ stateArchives { nodes { id } } }', authorization: `Bearer ${credential}` });
    await ask(`${name} as a password`, {
      query: '{ stateArchives { nodes { id } } }',
      authorization: `Basic ${Buffer.from(`user:${credential}`).toString('base64')}`,
    });
  }
  await request(
    'a bad link',
    `/archives/00000000-0000-4000-8000-000000000000?token=${watch.plant('a bad link')}`,
    {},
  );
  await request('an address with a token', `/nowhere?token=${watch.plant('a stray token')}`, {});
  await request(
    'an address that is no URL',
    `/archives/%zz?token=${watch.plant('a token in a bad URL')}`,
    {},
  );

  // Where it belongs.
  await ask('raw state', {
    query:
      '{ stateArchive(name: "secret/app") { version(serial: "1") { rawState outputNames changes { added } } } }',
    mayHold: [RAW_STATE],
  });
  const exported = await ask('export', { query: EXPORT, variables: { name: 'secret/app' }, mayHold: [LINK] });
  const link = (exported.operation as { archive: { downloadUrl: string } }).archive.downloadUrl;
  watch.add(LINK, new URL(link).searchParams.get('token') ?? '');
  const { bytes: archive, status } = await request('download', link, {});
  outcomes.download = String(status);
  await request('a part of the download', link, { headers: { range: 'bytes=10-20' } });
  await request('a range beyond the download', link, { headers: { range: 'bytes=99999999-' } });
  await request('the link with another method', link, { method: 'PUT' });

  // Archives, whole and otherwise.
  await restore('import', archive);
  await restore('import tried', archive, { dryRun: true });
  await restore('import of a taken name', archive, { name: 'secret/app' });
  await restore('import cut short', archive.subarray(0, archive.length - 9));
  const tar = zstdDecompressSync(archive);
  tar.write('HUNTER2', tar.lastIndexOf(inState));
  await restore('import with a byte flipped', zstdCompressSync(tar));
  await restore('import of something else', Buffer.from(document));
  for (const [name, rawState] of [
    ['import of no JSON', `{"version":4,"secret":${planted}}`],
    ['import of an endless number', document.replace(`"${planted}"`, `{"${planted}":1e999999}`)],
    ['import of a NUL', document.replace(planted, `${planted}\\u0000`)],
    ['import of another serial', document.replace('"serial":1', '"serial":7')],
  ] as const) {
    const path = join(directory, `${createHash('sha256').update(name).digest('hex')}.klstate`);
    await buildArchive({ versions: [{ serial: 1n, rawState }] }, path);
    await restore(name, await readFile(path));
  }

  // A database that refuses, in words that repeat the row: as a constraint, in a COPY, as a value of a wrong type.
  for (const [name, broken, mended] of [
    [
      'a constraint',
      'alter table state_versions add constraint refuse check (serial < 0) not valid',
      'alter table state_versions drop constraint refuse',
    ],
    [
      'a cast',
      `create function refuse() returns trigger language plpgsql as
         $$ begin perform (new.raw_state->'outputs'->>'secret')::int, new.raw_state::text::int; return new; end $$;
       create trigger refuse before insert on state_versions for each row execute function refuse()`,
      'drop trigger refuse on state_versions; drop function refuse()',
    ],
    [
      'a missing table',
      'alter table state_versions rename to state_versions_away',
      'alter table state_versions_away rename to state_versions',
    ],
  ] as const) {
    await sql(broken);
    await post(`snapshot against ${name}`, 'secret/app', document);
    await restore(`import against ${name}`, archive);
    await ask(`export against ${name}`, {
      query: EXPORT,
      variables: { name: 'secret/app' },
      mayHold: [LINK],
    });
    await ask(`preview against ${name}`, {
      query: '{ stateArchive(name: "secret/app") { manifest { historyDigest } } }',
    });
    await sql(mended);
  }
  return outcomes;
}

function stateDocument(secret: string): string {
  return JSON.stringify({
    version: 4,
    terraform_version: '1.11.4',
    serial: 1,
    lineage: '7c1e5d1a-3b52-4c8e-9a44-0d8f2b6c9e10',
    outputs: { secret: { value: secret, type: 'string', sensitive: true } },
    resources: [],
  });
}
