import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { verifyArchive } from '../../src/archive/reader.ts';
import { cleanUp, startMain, temporaryDirectory } from '../e2e/support/processes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { kl, klJson, startKl } from './support/kl.ts';
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
const operationsOf = (name: string) => klJson<unknown[]>(['operations', name], { env });

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
  await writeFile(at('large.tfstate'), JSON.stringify(document));
  await klJson(['import', 'snapshot', 'large.tfstate', '--name', name, '--yes'], {
    env: into,
    cwd: directory,
  });
  await rm(at('large.tfstate'));
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

test('an upload that is cut goes on where it stopped, and ends in one import', async () => {
  // What the service has received it keeps in pieces of this length.
  const piece = 8 * 1024 * 1024;
  await postLargeState('sent', { bytes: piece + 4 * PART });
  expect((await export_('sent').ended).exitCode).toBe(0);
  const before = proxy.requests.length;
  proxy.interfere({
    matches: ({ method }) => method === 'PATCH',
    after: piece + 2 * PART,
    how: 'cut',
    ofRequest: true,
    hasArrived: async () => {
      const { rows } = await service.database.pool.query(
        'select max(received_bytes) as most from state_archive.upload',
      );
      return Number(rows[0].most) >= piece;
    },
  });
  const args = ['import', 'archive', 'x.klstate', '--as', 'received', '--allow-shared-lineage', '--yes'];
  const { exitCode, stdout } = await kl(args, { env, cwd: directory });
  expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Digest equal +yes/m)]);
  const [first, second, ...more] = proxy.requests
    .slice(before)
    .flatMap(({ offset }) => (offset === undefined ? [] : [Number(offset)]));
  expect([first, more]).toEqual([0, []]);
  expect(second).toBeGreaterThanOrEqual(piece);
  expect(await operationsOf('received')).toHaveLength(1);
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
  const settings = { DATA_DIR, PORT: String(port), PUBLIC_URL: own.url };
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
  }
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
