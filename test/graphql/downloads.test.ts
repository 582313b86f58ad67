import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loadOrCreateLinkSigner } from '../../src/auth/links.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { postHistory } from './support/states.ts';

interface ExportedFile {
  readonly sha256: string;
  readonly sizeBytes: string;
  readonly fileName: string;
  readonly downloadUrl: string;
}

let service: TestService;
let operationId: string;
let file: ExportedFile;

beforeAll(async () => {
  service = await startTestService();
  await postHistory(service.database, null, 'prod/net work', [{}, { resources: { a: '1' } }]);
  ({ operationId, file } = await exportState());
});

afterAll(() => service.stop());

async function exportState(): Promise<{ operationId: string; file: ExportedFile }> {
  const { data } = await service.ask<{
    exportStateArchive: { operation: { id: string; archive: ExportedFile } };
  }>(
    `mutation { exportStateArchive(input: { name: "prod/net work" }) {
      operation { id archive { sha256 sizeBytes fileName downloadUrl } }
    } }`,
  );
  const { id, archive } = data.exportStateArchive.operation;
  return { operationId: id, file: archive };
}

/** The link's address with other query parameters. */
function addressWith(token: string | null): string {
  const url = new URL(file.downloadUrl);
  url.search = token === null ? '' : new URLSearchParams({ token }).toString();
  return url.href;
}

function tokenOf({ downloadUrl }: ExportedFile): string {
  return new URL(downloadUrl).searchParams.get('token') ?? '';
}

async function get(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const response = await fetch(url, { headers, method });
  return {
    status: response.status,
    headers: response.headers,
    bytes: Buffer.from(await response.arrayBuffer()),
  };
}

describe('a download link', () => {
  test('gives the archive, whole, under its name, to be kept by no cache', async () => {
    const { status, headers, bytes } = await get(file.downloadUrl);
    expect([status, createHash('sha256').update(bytes).digest('hex')]).toEqual([200, file.sha256]);
    expect(file.downloadUrl.startsWith(`${service.url}/archives/${operationId}?token=`)).toBe(true);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-length': file.sizeBytes,
      etag: `"${file.sha256}"`,
      'accept-ranges': 'bytes',
      'content-disposition': `attachment; filename="${file.fileName}"`,
      'content-type': 'application/vnd.kilolock.state-archive',
      'cache-control': expect.stringContaining('no-store'),
    });
    expect(file.fileName).toBe('prod-net-work-2.klstate');
  });

  test('gives a part of it, so that a download can be resumed', async () => {
    const whole = (await get(file.downloadUrl)).bytes;
    const rest = await get(file.downloadUrl, { range: 'bytes=100-', 'if-range': `"${file.sha256}"` });
    expect([rest.status, rest.headers.get('content-range')]).toEqual([
      206,
      `bytes 100-${whole.length - 1}/${whole.length}`,
    ]);
    expect(Buffer.concat([whole.subarray(0, 100), rest.bytes]).equals(whole)).toBe(true);
    const beyond = await get(file.downloadUrl, { range: `bytes=${whole.length}-` });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, `bytes */${whole.length}`]);
    const head = await get(file.downloadUrl, {}, 'HEAD');
    expect([head.status, head.headers.get('content-length'), head.bytes.length]).toEqual([
      200,
      file.sizeBytes,
      0,
    ]);
  });

  test('leads nowhere once the archive is past its time', async () => {
    const past = await exportState();
    await service.database.pool.query(
      `update state_archive.operation set expires_at = now() - interval '1 second' where id = $1`,
      [past.operationId],
    );
    expect((await get(past.file.downloadUrl)).status).toBe(404);
    const { data } = await service.ask(
      'query ($id: ID!) { stateArchiveOperation(id: $id) { status archive { sha256 downloadUrl } } }',
      { variables: { id: past.operationId } },
    );
    expect(data).toEqual({
      stateArchiveOperation: { status: 'EXPIRED', archive: { sha256: past.file.sha256, downloadUrl: null } },
    });
  });

  test('is given to nobody without state.export', async () => {
    const { data, denials, text } = await service.ask(
      `query ($id: ID!) { stateArchiveOperation(id: $id) { archive { sha256 downloadUrl } } }`,
      {
        variables: { id: operationId },
        token: await service.token({ scopes: ['state.read', 'state.import'] }),
      },
    );
    expect(data).toEqual({ stateArchiveOperation: { archive: { sha256: file.sha256, downloadUrl: null } } });
    expect(denials).toEqual(['stateArchiveOperation.archive.downloadUrl: FORBIDDEN']);
    expect(text).not.toContain('token=');
  });

  test('that is not good leads nowhere, and does not say why', async () => {
    const other = await exportState();
    const token = tokenOf(file);
    const [head = '', claims = '', signature = ''] = token.split('.');
    const longer = JSON.parse(Buffer.from(claims, 'base64url').toString());
    const prolonged = Buffer.from(JSON.stringify({ ...longer, exp: longer.exp + 3600 })).toString(
      'base64url',
    );
    const anHourAgo = () => new Date(Date.now() - 3_600_000);
    const expired = await (await loadOrCreateLinkSigner(service.dataDirectory, anHourAgo)).sign({
      purpose: 'download',
      resourceId: operationId,
      subject: 'alice@test',
      token: null,
      workspace: 'ws_000000000000',
      environment: 'env_000000000000',
      expiresInSeconds: 900,
    });
    const links = {
      'without a token': addressWith(null),
      'with an empty token': addressWith(''),
      'with its claims changed': addressWith([head, prolonged, signature].join('.')),
      'with its signature cut off': addressWith([head, claims, ''].join('.')),
      'with another signature': addressWith([head, claims, tokenOf(other.file).split('.')[2]].join('.')),
      expired: addressWith(expired),
      'of another operation': addressWith(tokenOf(other.file)),
      'with a credential for a token': addressWith(await service.token()),
      'with the token twice': `${file.downloadUrl}&token=${token}`,
      'to no operation': file.downloadUrl.replace(operationId, '00000000-0000-4000-8000-000000000000'),
      'to no id': file.downloadUrl.replace(operationId, 'hunter2'),
    };
    const answers = await Promise.all(
      Object.entries(links).map(async ([name, url]) => {
        const { status, bytes } = await get(url);
        const { error } = JSON.parse(bytes.toString());
        return [name, status, error.code, error.message];
      }),
    );
    const [first] = answers;
    expect(answers).toEqual(Object.keys(links).map((name) => [name, 404, 'NOT_FOUND', first?.[3]]));
    // The good one is good still.
    expect((await get(file.downloadUrl)).status).toBe(200);
  });

  test('is no credential: what it opens is one file', async () => {
    const { status } = await service.ask('{ stateArchives { nodes { id } } }', { token: tokenOf(file) });
    expect(status).toBe(401);
    const header = await get(addressWith(null), { authorization: `Bearer ${await service.token()}` });
    expect(header.status).toBe(404);
  });

  test('never reaches the log', async () => {
    await get(file.downloadUrl);
    await get(addressWith('hunter2'));
    await get(`${service.url}/livez`);
    const log = service.log.join('');
    expect([
      log.includes('/archives/:operationId'),
      log.includes(tokenOf(file)),
      log.includes('hunter2'),
    ]).toEqual([true, false, false]);
  });
});
