import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';
import { Work } from '../../src/kl/progress.ts';
import { Service } from '../../src/kl/service.ts';
import { transfer } from '../../src/kl/transfer.ts';
import { cleanUp, startMain, temporaryDirectory } from '../e2e/support/processes.ts';
import { createTestDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { multipartForm } from '../support/multipart-form.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { klAtTerminal, startKl } from './support/kl.ts';
import { type HarmfulProxy, startProxy } from './support/proxy.ts';

/** Where a download is stopped: behind it is the better part of the file. */
const PART = 128 * 1024;

let service: TestService;
let proxy: HarmfulProxy;
let directory: string;
let env: Record<string, string>;

beforeAll(async () => {
  proxy = await startProxy();
  service = await startTestService({ PUBLIC_URL: proxy.url });
  proxy.target = service.url;
});
afterAll(async () => {
  await proxy.close();
  await service.stop();
});

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kl-transfers-'));
  env = { KL_ENDPOINT: `${proxy.url}/graphql`, KL_TOKEN: await service.token(), HOME: directory };
});
afterEach(() => rm(directory, { recursive: true }));

const at = (name: string) => join(directory, name);
const isDownload = ({ url }: IncomingMessage) => url?.startsWith('/archives/') ?? false;
/** Where each download began. */
const startsIn = (requests: HarmfulProxy['requests']) =>
  requests
    .filter(({ path }) => path.startsWith('/archives/'))
    .map(({ range }) => Number(/^bytes=(\d+)-$/.exec(range ?? 'bytes=0-')?.[1]));
const lengthOf = (name: string) =>
  stat(at(name)).then(
    ({ size }) => size,
    () => 0,
  );
/** Whether what passed of the last download is on this disk. */
const partIsStored =
  ({ requests } = proxy) =>
  async () =>
    (await lengthOf('x.klstate.partial')) === (startsIn(requests).at(-1) ?? 0) + PART;
/** Lets so much of the next download pass, and no more. Resolves when that is on this disk. */
const holdDownload = (from = proxy) =>
  new Promise<void>((onDone) => {
    const hasArrived = partIsStored(from);
    from.interfere({ matches: isDownload, after: PART, how: 'hold', hasArrived, onDone });
  });
const export_ = (name: string) =>
  startKl(['export', 'state', name, '-o', 'x.klstate'], { env, cwd: directory });
async function operationsOf(name: string): Promise<unknown[]> {
  const { rows } = await service.database.pool.query(
    'select kind, status from state_archive.operation where state_label = $1',
    [name],
  );
  return rows;
}

/** Posts a version that holds random bytes: its archive is as large. */
async function postLargeState(
  name: string,
  { serial = 1, bytes = 4 * PART, into = env }: { serial?: number; bytes?: number; into?: typeof env } = {},
): Promise<void> {
  const document = {
    version: 4,
    terraform_version: '1.11.4',
    serial,
    lineage: '',
    outputs: { large: { value: randomBytes(bytes).toString('base64'), type: 'string' } },
    resources: [],
  };
  const query = `mutation ($name: String!, $file: Upload!) {
    importStateSnapshot(input: { name: $name, file: $file }) { userErrors { code } } }`;
  const answer = await fetch(into.KL_ENDPOINT ?? '', {
    method: 'POST',
    headers: { authorization: `Bearer ${into.KL_TOKEN}`, 'apollo-require-preflight': 'true' },
    body: multipartForm(query, { name }, { bytes: JSON.stringify(document), name: 'large.tfstate' }),
  });
  expect(await answer.json()).toEqual({ data: { importStateSnapshot: { userErrors: [] } } });
}

test('a download that is cut goes on where it stopped, by itself, as often as it is cut', async () => {
  await postLargeState('cut');
  const before = proxy.requests.length;
  proxy.interfere({ matches: isDownload, after: PART, how: 'cut', times: 2, hasArrived: partIsStored() });
  const { exitCode } = await export_('cut').ended;
  expect(exitCode).toBe(0);
  await verifyArchive(at('x.klstate'));
  // What had arrived was not asked for again.
  expect(startsIn(proxy.requests.slice(before))).toEqual([0, PART, 2 * PART]);
});

test('Ctrl-C leaves a part, for its owner alone, and the next call goes on with it', async () => {
  await postLargeState('interrupted');
  const held = holdDownload();
  const first = export_('interrupted');
  await held;
  first.child.kill('SIGINT');
  const { exitCode, stderr, stdout } = await first.ended;
  expect([exitCode, stdout, stderr]).toEqual([130, '', expect.stringContaining('INTERRUPTED')]);
  for (const name of await readdir(directory)) expect((await stat(at(name))).mode & 0o777).toBe(0o600);
  expect((await readdir(directory)).sort()).toEqual(['x.klstate.partial', 'x.klstate.partial.json']);
  const second = await export_('interrupted').ended;
  expect(second.exitCode).toBe(0);
  expect(startsIn(proxy.requests).at(-1)).toBe(PART);
  expect(await readdir(directory)).toEqual(['x.klstate']);
  // One export was enough.
  expect(await operationsOf('interrupted')).toHaveLength(1);
});

test('a part of a history that has changed since is not gone on with', async () => {
  await postLargeState('moved');
  const held = holdDownload();
  const first = export_('moved');
  await held;
  first.child.kill('SIGINT');
  await first.ended;
  await postLargeState('moved', { serial: 2 });
  expect((await export_('moved').ended).exitCode).toBe(0);
  expect((await verifyArchive(at('x.klstate'))).counts.versions).toBe(2);
});

test('a download that is not what the service made is refused, and nothing of it is left', async () => {
  await postLargeState('flipped');
  proxy.interfere({ matches: isDownload, after: PART, how: 'flip' });
  const { exitCode, stdout } = await export_('flipped').ended;
  expect([exitCode, stdout]).toEqual([5, '']);
  expect(await readdir(directory)).not.toContain('x.klstate');
  expect((await export_('flipped').ended).exitCode).toBe(0);
  expect(await readdir(directory)).toEqual(['x.klstate']);
});

describe('an upload', () => {
  // What the service has received it keeps in pieces of this length.
  const piece = 8 * 1024 * 1024;
  let large: Buffer;

  const isSending = ({ method }: IncomingMessage) => method === 'PATCH';
  const pieceIsKept = async () => {
    const { rows } = await service.database.pool.query(
      'select max(received_bytes) as most from state_archive.upload where operation_id is null',
    );
    return Number(rows[0].most) >= piece;
  };
  /** How many may be imported still; the record of one that was goes when its import is over already. */
  const usableUploads = async () => {
    const { rowCount } = await service.database.pool.query(
      'select from state_archive.upload where expires_at > now() and operation_id is null',
    );
    return rowCount;
  };
  const import_ = (name: string, ...more: string[]) =>
    startKl(['import', 'archive', 'x.klstate', '--as', name, '--allow-shared-lineage', '--yes', ...more], {
      env,
      cwd: directory,
    });
  const offsetsSince = (before: number) =>
    proxy.requests.slice(before).flatMap(({ offset }) => (offset === undefined ? [] : [Number(offset)]));
  const statesOfUploads = async () => {
    const kept = at('.local/state/kilolock-state-archive/uploads');
    return (await readdir(kept).catch(() => [])).map((name) => join(kept, name));
  };

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kl-transfers-'));
    env = { KL_ENDPOINT: `${proxy.url}/graphql`, KL_TOKEN: await service.token(), HOME: directory };
    await postLargeState('sent', { bytes: piece + 4 * PART });
    expect((await export_('sent').ended).exitCode).toBe(0);
    large = await readFile(at('x.klstate'));
    await rm(directory, { recursive: true });
  });
  beforeEach(() => writeFile(at('x.klstate'), large));

  test('that is cut goes on where it stopped, and ends in one import', async () => {
    const before = proxy.requests.length;
    proxy.interfere({
      matches: isSending,
      after: piece + 2 * PART,
      how: 'cut',
      ofRequest: true,
      hasArrived: pieceIsKept,
    });
    const { exitCode, stdout } = await import_('received').ended;
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Digest equal +yes/m)]);
    const [first, second, ...more] = offsetsSince(before);
    expect([first, more]).toEqual([0, []]);
    expect(second).toBeGreaterThanOrEqual(piece);
    expect(await operationsOf('received')).toEqual([{ kind: 'IMPORT', status: 'SUCCEEDED' }]);
    expect(await statesOfUploads()).toEqual([]);
  });

  test.each(['SIGINT', 'SIGKILL'] as const)(
    'whose sender is ended by %s goes on with the next call, from what is kept for the owner alone',
    async (signal) => {
      const name = `after-${signal.toLowerCase()}`;
      const before = proxy.requests.length;
      const held = new Promise<void>((onDone) => {
        proxy.interfere({
          matches: isSending,
          after: piece + 2 * PART,
          how: 'hold',
          ofRequest: true,
          hasArrived: pieceIsKept,
          onDone,
        });
      });
      const first = import_(name);
      await held;
      first.child.kill(signal);
      expect((await first.ended).exitCode).toBe(signal === 'SIGINT' ? 130 : null);
      const [kept = '', ...others] = await statesOfUploads();
      expect([others, (await stat(kept)).mode & 0o777, (await stat(dirname(kept))).mode & 0o777]).toEqual([
        [],
        0o600,
        0o700,
      ]);
      expect(await usableUploads()).toBe(1);

      const { exitCode, stdout } = await import_(name).ended;
      expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Digest equal +yes/m)]);
      const [, second, ...more] = offsetsSince(before);
      expect(second).toBeGreaterThanOrEqual(piece);
      expect([more, await operationsOf(name)]).toEqual([[], [{ kind: 'IMPORT', status: 'SUCCEEDED' }]]);
      expect(await statesOfUploads()).toEqual([]);
    },
  );

  test('that is over when the next call comes is begun anew', async () => {
    const held = new Promise<void>((onDone) => {
      proxy.interfere({ matches: isSending, after: PART, how: 'hold', ofRequest: true, onDone });
    });
    const first = import_('anew');
    await held;
    first.child.kill('SIGINT');
    await first.ended;
    await service.database.pool.query('update state_archive.upload set expires_at = now()');
    const before = proxy.requests.length;
    expect((await import_('anew').ended).exitCode).toBe(0);
    expect(offsetsSince(before)).toEqual([0]);
    expect(await statesOfUploads()).toEqual([]);
  });

  test('is sent once for a preview and the import that follows, and deleted when nothing follows', async () => {
    const args = ['import', 'archive', 'x.klstate', '--as', 'asked', '--allow-shared-lineage'];
    let before = proxy.requests.length;
    const declined = klAtTerminal(args, { env, cwd: directory });
    await declined.shown('Import it? [y/N]');
    declined.type('n\r');
    expect((await declined.ended).exitCode).toBe(3);
    expect([offsetsSince(before), await statesOfUploads()]).toEqual([[0], []]);
    before = proxy.requests.length;
    const accepted = klAtTerminal(args, { env, cwd: directory });
    await accepted.shown('Import it? [y/N]');
    accepted.type('y\r');
    expect((await accepted.ended).exitCode).toBe(0);
    expect([offsetsSince(before), await statesOfUploads()]).toEqual([[0], []]);
    expect(await usableUploads()).toBe(0);
  });
});

test('a transfer of which no connection moves a byte ends, whatever the answers say', async () => {
  const there = new Service('http://127.0.0.1:1/graphql', 'x', new AbortController().signal);
  const file = { step: 'downloading', size: 10, stallMs: 1000, arrived: async () => 3 } as const;
  const moving = transfer(there, { ...file, attempt: async () => 3 }, new Work('x', () => {}));
  await expect(moving).rejects.toMatchObject({ code: 'UNREACHABLE' });
});

test('a request whose answer is lost is sent again, and nothing is done twice', async () => {
  await postLargeState('answered');
  const mutations: string[] = [];
  const isAfterPreview = ({ url, headers }: IncomingMessage) => {
    // The second request: the first has to be answered, or the address may be wrong.
    if (url === '/graphql') mutations.push(headers['content-length'] ?? '');
    return mutations.length === 2;
  };
  proxy.interfere({ matches: isAfterPreview, after: 1, how: 'cut' });
  expect((await export_('answered').ended).exitCode).toBe(0);
  expect(await operationsOf('answered')).toHaveLength(1);
});

test('tells how far it is where there is no terminal: now and then, and when it is asked by SIGUSR1', async () => {
  await postLargeState('told');
  const held = holdDownload();
  const quiet = startKl(['export', 'state', 'told', '-o', 'x.klstate', '--quiet'], {
    env: { ...env, KL_PROGRESS_SECONDS: '1' },
    cwd: directory,
  });
  await held;
  quiet.child.kill('SIGUSR1');
  await quiet.said('told: ');
  quiet.child.kill('SIGINT');
  expect((await quiet.ended).stderr).toMatch(/^told: \w/m);
  const heldAgain = holdDownload();
  const talking = startKl(['export', 'state', 'told', '-o', 'x.klstate'], {
    env: { ...env, KL_PROGRESS_SECONDS: '1' },
    cwd: directory,
  });
  await heldAgain;
  await talking.said('told: downloading  ');
  talking.child.kill('SIGINT');
  await talking.ended;
});

test('a service that is restarted in the middle of a download is waited for', async () => {
  const own = await startProxy();
  const port = await freePort();
  const DATA_DIR = await temporaryDirectory();
  const { connectionString, drop } = await createTestDatabase();
  const settings = {
    DATA_DIR,
    DATABASE_URL: connectionString,
    AUTH_DEV_KEY: 'true',
    PORT: String(port),
    PUBLIC_URL: own.url,
  };
  own.target = `http://127.0.0.1:${port}`;
  try {
    const first = await startMain(settings);
    const itsEnv = { KL_ENDPOINT: `${own.url}/graphql`, KL_TOKEN: first.token, HOME: directory };
    await postLargeState('restarted', { into: itsEnv });
    const held = holdDownload(own);
    const exporting = startKl(['export', 'state', 'restarted', '-o', 'x.klstate'], {
      env: itsEnv,
      cwd: directory,
    });
    await held;
    first.child.kill('SIGKILL');
    await first.ended;
    own.cut();
    await startMain(settings);
    const { exitCode, stderr } = await exporting.ended;
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining('To check it later')]);
    await verifyArchive(at('x.klstate'));
    expect(startsIn(own.requests)).toEqual([0, PART]);
  } finally {
    await own.close();
    await cleanUp();
    await drop();
  }
});
