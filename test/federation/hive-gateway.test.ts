import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { composeServices } from '@apollo/composition';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parse } from 'graphql';
import { postHistory } from '../graphql/support/states.ts';
import { startTestService, type TestService } from '../support/service.ts';

const SECRET = 'the-secret-of-the-gateway-in-this-test';

const EXPORT = `mutation ($input: ExportStateArchiveInput!) {
  exportStateArchive(input: $input) { operation { id status archive { sha256 downloadUrl } } userErrors { code } }
}`;
const RESULT = `{
  operation { id status report { dryRun name versionCount } stateArchive { name } }
  userErrors { code message path }
}`;

let service: TestService;
let gateway: ChildProcess;
let url: string;

/** A gateway set up as docs/gateways.md says, composed from what the service itself gives a gateway. */
beforeAll(async () => {
  service = await startTestService({ GATEWAY_SECRET: SECRET });
  await postHistory(service.database, null, 'prod/network', [{}, {}]);
  const { data } = await service.ask<{ _service: { sdl: string } }>('{ _service { sdl } }', {
    headers: { 'x-gateway-secret': SECRET },
  });
  const { supergraphSdl, errors } = composeServices([
    { name: 'state-archive', url: `${service.url}/graphql`, typeDefs: parse(data._service.sdl) },
  ]);
  expect(errors).toBeUndefined();
  const program = fileURLToPath(new URL('./support/hive-gateway.mjs', import.meta.url));
  gateway = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  if (gateway.stdin === null || gateway.stdout === null) throw new Error('unreachable: both are piped');
  gateway.stdin.write(`${JSON.stringify({ supergraph: supergraphSdl, secret: SECRET })}\n`);
  [url] = await once(createInterface({ input: gateway.stdout }), 'line');
});
afterAll(async () => {
  const ended = once(gateway, 'exit');
  gateway.stdin?.end();
  await ended;
  await service.stop();
});

async function ask(body: string | FormData, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await service.token()}`, ...headers },
    body,
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers of several shapes
  return (await response.json()) as any;
}

const query = (text: string, variables: object = {}) =>
  ask(JSON.stringify({ query: text, variables }), { 'content-type': 'application/json' });

function upload(text: string, variables: object, place: string, bytes: Uint8Array<ArrayBuffer>) {
  const form = new FormData();
  form.set('operations', JSON.stringify({ query: text, variables }));
  form.set('map', JSON.stringify({ 0: [place] }));
  form.set('0', new Blob([bytes]), 'network.klstate');
  return ask(form, { 'x-graphql-yoga-csrf': 'true', 'apollo-require-preflight': 'true' });
}

async function exported(): Promise<Uint8Array<ArrayBuffer>> {
  const { data } = await query(EXPORT, { input: { name: 'prod/network' } });
  const response = await fetch(data.exportStateArchive.operation.archive.downloadUrl);
  return new Uint8Array(await response.arrayBuffer());
}

describe('through Hive Gateway', () => {
  test('an archive is exported, and imported again under another name', async () => {
    const answer = await upload(
      `mutation ($file: Upload!) {
        importStateArchive(input: { file: $file, name: "through/gateway", allowSharedLineage: true }) ${RESULT}
      }`,
      { file: null },
      'variables.file',
      await exported(),
    );
    expect(answer).toEqual({
      data: {
        importStateArchive: {
          operation: {
            id: expect.any(String),
            status: 'SUCCEEDED',
            report: { dryRun: false, name: 'through/gateway', versionCount: 2 },
            stateArchive: { name: 'through/gateway' },
          },
          userErrors: [],
        },
      },
    });
  });

  test('a client that sends its whole input as a variable is served as well: here a dry run', async () => {
    const answer = await upload(
      `mutation ($input: ImportStateArchiveInput!) { importStateArchive(input: $input) ${RESULT} }`,
      { input: { file: null, name: 'through/dry-run', allowSharedLineage: true, dryRun: true } },
      'variables.input.file',
      await exported(),
    );
    expect(answer.data.importStateArchive).toMatchObject({
      operation: {
        status: 'SUCCEEDED',
        report: { dryRun: true, name: 'through/dry-run' },
        stateArchive: null,
      },
      userErrors: [],
    });
  });

  test('a snapshot comes as a file', async () => {
    const document = JSON.stringify({
      version: 4,
      serial: 1,
      lineage: crypto.randomUUID(),
      resources: [],
      outputs: {},
    });
    const answer = await upload(
      `mutation ($file: Upload) { importStateSnapshot(input: { name: "through/snapshot", file: $file }) {
        version { serial } userErrors { code message } } }`,
      { file: null },
      'variables.file',
      new TextEncoder().encode(document),
    );
    expect(answer).toEqual({ data: { importStateSnapshot: { version: { serial: '1' }, userErrors: [] } } });
  });

  test('what fails takes nothing with it, and is told with its code', async () => {
    const answer = await query(
      '{ stateArchives(first: 0) { nodes { id } } stateArchive(name: "prod/network") { name versions(first: 0) { totalCount } } }',
    );
    expect(answer.data).toEqual({
      stateArchives: null,
      stateArchive: { name: 'prod/network', versions: null },
    });
    const codes = answer.errors.map(({ extensions }: { extensions: { code: string } }) => extensions.code);
    expect(codes).toEqual(['BAD_USER_INPUT', 'BAD_USER_INPUT']);
  });
});
