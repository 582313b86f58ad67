import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readIndex } from '../../src/kl/archive-index.ts';
import { kl } from '../kl/support/kl.ts';
import { type Deployment, startDeployment } from './support/deployment.ts';
import { ask, cleanUp } from './support/processes.ts';

/** @file The procedures of docs/operations.md that take whole deployments, as a person carries them out. */

const DOCUMENTS = fileURLToPath(new URL('../../src/development/terraform-history', import.meta.url));
const OTHER_KEY = 'a key that was made later and is long enough';
const [DNS, NETWORK] = ['prod/dns', 'prod/network'];

let directory: string;
let home: Deployment;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'state-archive-drill-'));
  home = await startDeployment('home');
  // Ten states that Terraform wrote.
  await at(home, 'archive', 'build', DOCUMENTS, '--out', 'built.klstate');
  await at(home, 'import', 'archive', 'built.klstate', '--as', NETWORK, '--yes');
  const [first = ''] = await readdir(DOCUMENTS);
  const document = await readFile(join(DOCUMENTS, first), 'utf8');
  await writeFile(
    join(directory, 'dns.tfstate'),
    document.replace(/"lineage": "[^"]{8}/, '"lineage": "0d75d4a5'),
  );
  await at(home, 'import', 'snapshot', 'dns.tfstate', '--name', DNS, '--yes');
});
afterAll(async () => {
  await home.stop();
  await cleanUp();
  await rm(directory, { recursive: true });
});

/** What `kl` prints at a terminal of somebody who works on this deployment. */
async function at({ endpoints, token }: Deployment, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await kl(args, {
    env: { KL_ENDPOINT: endpoints[0] ?? '', KL_TOKEN: token, HOME: directory },
    cwd: directory,
  });
  if (exitCode !== 0) throw new Error(`kl ${args.join(' ')} ended with ${exitCode}: ${stderr}`);
  return stdout;
}

test('an environment that one deployment gave out comes whole into another that has nothing of it', async () => {
  const given = await digestsAt(home, 'kept');
  expect([...given.keys()]).toEqual([DNS, NETWORK]);
  const away = await startDeployment('away');
  try {
    await at(away, 'import', 'archives', 'kept', '--dry-run');
    expect((await away.database.pool.query('select from states')).rowCount).toBe(0);
    await at(away, 'import', 'archives', 'kept', '--yes');
    expect(await digestsAt(away)).toEqual(given);
  } finally {
    await away.stop();
  }
});

test('the key of links is replaced, and links of the old one stay good until it is taken out', async () => {
  const [linked, elsewhere] = [await linkAt(home, 0), 1];
  await home.restart({ LINK_KEYS: `${OTHER_KEY},${home.linkKeys}` });
  expect(await statusOf(linked, home, elsewhere)).toBe(200);
  const linkedSince = await linkAt(home, 0);
  await home.restart({ LINK_KEYS: OTHER_KEY });
  expect(await statusOf(linked, home, elsewhere)).toBe(404);
  expect(await statusOf(linkedSince, home, elsewhere)).toBe(200);
});

test('a database that came back without the service’s own schemas has lost its records, and nothing of Kilolock’s', async () => {
  const before = await digestsAt(home);
  await home.database.pool.query('drop schema state_archive, state_archive_queue cascade');
  await home.prepare();
  await home.restart({});
  expect(await at(home, 'operations', '--format', 'json')).toMatch(/\[\s*\]/);
  expect(await digestsAt(home)).toEqual(before);
});

/** The history digest of each state, by a whole export of each. */
async function digestsAt(deployment: Deployment, to?: string): Promise<Map<string, string>> {
  const kept = to ?? `kept-${randomUUID()}`;
  await at(deployment, 'export', 'states', '*', '--out', kept);
  const entries = await readIndex(join(directory, kept));
  return new Map([...entries].map(([name, { historyDigest }]) => [name, historyDigest]));
}

/** A link to a new export, made by one of the replicas. */
async function linkAt({ endpoints, token }: Deployment, replica: number): Promise<string> {
  const query = `mutation { exportStateArchive(input: { name: "${DNS}", waitSeconds: 25 }) { operation { archive { downloadUrl } } } }`;
  const url = (endpoints[replica] ?? '').replace('/graphql', '');
  const { exportStateArchive } = await ask<{
    exportStateArchive: { operation: { archive: { downloadUrl: string } } };
  }>({ url, token }, query);
  return exportStateArchive.operation.archive.downloadUrl;
}

/** What another replica than the one that made a link answers to it. */
async function statusOf(link: string, { endpoints }: Deployment, replica: number): Promise<number> {
  const { pathname, search } = new URL(link);
  return (await fetch(new URL(pathname + search, endpoints[replica]))).status;
}
