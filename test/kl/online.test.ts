import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { verifyArchive } from '../../src/archive/reader.ts';
import { loadSampleHistory } from '../../src/development/sample-history.ts';
import { createEnvironment } from '../graphql/support/states.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { KL, kl, klJson } from './support/kl.ts';

let service: TestService;
let shared: string;
let sampleDigest: string;
let directory: string;
let env: Record<string, string>;

beforeAll(async () => {
  service = await startTestService();
  await loadSampleHistory(service.database);
  shared = await mkdtemp(join(tmpdir(), 'kl-online-'));
  const exported = await klJson<{ historyDigest: string }>(
    ['export', 'state', 'demo/network', '-o', 'n.klstate'],
    { env: { KL_ENDPOINT: `${service.url}/graphql`, KL_TOKEN: await service.token() }, cwd: shared },
  );
  sampleDigest = exported.historyDigest;
});
afterAll(async () => {
  await service.stop();
  await rm(shared, { recursive: true });
});

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kl-online-'));
  const token = await service.token({
    scopes: ['state.read', 'state.export', 'state.import', 'state.overwrite'],
  });
  env = { KL_ENDPOINT: `${service.url}/graphql`, KL_TOKEN: token, HOME: directory };
});
afterEach(() => rm(directory, { recursive: true }));

const call = (...args: string[]) => kl(args, { env, cwd: directory });
const json = <Result = Record<string, unknown>>(...args: string[]) =>
  klJson<Result>(args, { env, cwd: directory });

/** Puts `n.klstate` there, an export of the sample, and gives its digest. */
async function exportSample(): Promise<string> {
  await copyFile(join(shared, 'n.klstate'), join(directory, 'n.klstate'));
  return sampleDigest;
}

/** Imports it under another name. */
const importSample = (name: string) =>
  json('import', 'archive', 'n.klstate', '--as', name, '--allow-shared-lineage', '--yes');

describe('kl export state', () => {
  test('says first what there is, and ends with a verified file for its owner alone', async () => {
    const { exitCode, stdout, stderr } = await call('export', 'state', 'demo/network', '--out', 'n.klstate');
    expect([exitCode, stderr]).toEqual([
      0,
      expect.stringMatching(/^demo\/network: 10 versions, \d+ kB of raw states/),
    ]);
    expect(stderr).toContain('kl archive verify n.klstate');
    const path = join(directory, 'n.klstate');
    const { historyDigest } = await verifyArchive(path);
    expect(stdout).toContain(historyDigest);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(directory)).toEqual(['n.klstate']);
  });

  test('asks again for a history that is digested a part at a time', async () => {
    let unfinished = 2;
    const server = createServer(async (request, response) => {
      const document = await text(request);
      response.setHeader('content-type', 'application/json');
      if (document.includes('manifest') && unfinished > 0) {
        unfinished -= 1;
        const errors = [{ message: 'Ask again.', extensions: { code: 'DIGESTS_INCOMPLETE' } }];
        response.end(JSON.stringify({ data: { stateArchive: { manifest: null } }, errors }));
        return;
      }
      const { authorization = '' } = request.headers;
      const headers = { authorization, 'content-type': 'application/json' };
      const answer = await fetch(`${service.url}/graphql`, { method: 'POST', headers, body: document });
      response.end(await answer.text());
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    try {
      const there = { ...env, KL_ENDPOINT: `http://127.0.0.1:${port}/graphql` };
      const args = ['export', 'state', 'demo/network', '--if-changed', sampleDigest];
      const { exitCode, stdout } = await kl(args, { env: there, cwd: directory });
      expect([exitCode, stdout, unfinished]).toEqual([0, 'unchanged\n', 0]);
    } finally {
      server.close();
    }
  });

  test('does nothing while the history is the one it is told, and replaces no file unless forced to', async () => {
    const historyDigest = await exportSample();
    const before = await stat(join(directory, 'n.klstate'));
    const taken = await call('export', 'state', 'demo/network', '-o', 'n.klstate');
    expect([taken.exitCode, taken.stderr]).toEqual([3, expect.stringContaining('FILE_EXISTS')]);
    const same = await call(
      'export',
      'state',
      'demo/network',
      '-o',
      'n.klstate',
      '--force',
      '--if-changed',
      historyDigest,
    );
    expect([same.exitCode, same.stdout]).toEqual([0, 'unchanged\n']);
    expect((await stat(join(directory, 'n.klstate'))).ino).toBe(before.ino);
    const other = '0'.repeat(64);
    const forced = await call(
      'export',
      'state',
      'demo/network',
      '-o',
      'n.klstate',
      '--force',
      '--if-changed',
      other,
    );
    expect(forced.exitCode).toBe(0);
    expect((await stat(join(directory, 'n.klstate'))).ino).not.toBe(before.ino);
  });

  test('gives a pipe the verified bytes and nothing else', async () => {
    const historyDigest = await exportSample();
    const piped = await promisify(execFile)(
      'sh',
      ['-c', `${KL} export state demo/network -o - > piped.klstate`],
      {
        cwd: directory,
        env: { PATH: process.env.PATH, ...env },
      },
    );
    expect(piped.stderr).toContain(historyDigest);
    expect((await verifyArchive(join(directory, 'piped.klstate'))).historyDigest).toBe(historyDigest);
  });
});

test('kl asks for no export whose file could not be written, and says why', async () => {
  const exports = async () =>
    (await service.database.pool.query('select from state_archive.operation')).rowCount;
  const before = await exports();
  const { exitCode, stderr } = await call('export', 'state', 'demo/network', '-o', 'none/n.klstate');
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringContaining('none/n.klstate cannot be written (no such file or directory)'),
  ]);
  expect(await exports()).toBe(before);
});

describe('kl export states', () => {
  test('takes every matching state with an index, then only what changed, and goes on after a failure', async () => {
    await exportSample();
    await Promise.all(['prod/a', 'prod/b b', 'other'].map(importSample));
    type Row = { name: string; outcome: string; file: string; error?: { code: string } };
    const first = await json<Row[]>('export', 'states', 'prod/*', '--out', 'kept');
    expect(first.map(({ name, outcome, file }) => [name, outcome, file])).toEqual([
      ['prod/a', 'EXPORTED', 'prod/a.klstate'],
      ['prod/b b', 'EXPORTED', 'prod/b%20b.klstate'],
    ]);
    const index = JSON.parse(await readFile(join(directory, 'kept/index.json'), 'utf8'));
    expect(index.states.map(({ name }: Row) => name)).toEqual(['prod/a', 'prod/b b']);
    for (const { file, sha256 } of index.states) {
      expect((await verifyArchive(join(directory, 'kept', file))).sha256).toBe(sha256);
    }

    const document = await readFile(new URL('../fixtures/terraform-history/010.tfstate', import.meta.url));
    await writeFile(
      join(directory, 'next.tfstate'),
      document.toString().replace('"serial": 10', '"serial": 11'),
    );
    await json('import', 'snapshot', 'next.tfstate', '--name', 'prod/a', '--yes');
    // One whose rows contradict each other cannot be exported.
    await sql`update public.state_versions set created_at = '-infinity' where serial = 3 and state_id =
      (select id from public.states where name = 'prod/b b')`.execute(service.database.for('record'));
    await rm(join(directory, 'kept/prod/b%20b.klstate'));
    const again = await kl(['export', 'states', 'prod/*', '-o', 'kept', '--format', 'json'], {
      env,
      cwd: directory,
    });
    const rows: Row[] = JSON.parse(again.stdout);
    expect(rows.map(({ name, outcome, error }) => [name, outcome, error?.code])).toEqual([
      ['prod/a', 'EXPORTED', undefined],
      ['prod/b b', 'FAILED', 'HISTORY_INCONSISTENT'],
    ]);
    expect([again.exitCode, again.stderr]).toEqual([3, expect.stringContaining('prod/b b')]);
    const third = await kl(['export', 'states', 'prod/a', '-o', 'kept', '--format', 'json'], {
      env,
      cwd: directory,
    });
    expect(JSON.parse(third.stdout)).toEqual([expect.objectContaining({ outcome: 'UNCHANGED' })]);
  });
});

describe('kl import', () => {
  test('brings a history back under another name, and says that the digest is equal and what comes next', async () => {
    await exportSample();
    const { exitCode, stdout, stderr } = await call(
      'import',
      'archive',
      'n.klstate',
      '--as',
      'back/again',
      '--allow-shared-lineage',
      '--yes',
    );
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^Digest equal +yes/m);
    expect(stderr).toContain('https://KILOLOCK/v1/states/back/again"');
    expect(stderr).toContain('terraform plan');
    const compared = await call('archive', 'verify', 'n.klstate', '--against', 'back/again');
    expect([compared.exitCode, compared.stdout]).toEqual([0, expect.stringContaining('the same history')]);
  });

  test('refuses what is taken, and says which option is meant', async () => {
    await exportSample();
    const [taken, other] = await Promise.all([
      call('import', 'archive', 'n.klstate', '--yes'),
      call('import', 'archive', 'n.klstate', '--as', 'second', '--yes'),
    ]);
    expect([taken.exitCode, taken.stdout]).toEqual([3, '']);
    expect(taken.stderr).toContain('STATE_ALREADY_EXISTS');
    expect(taken.stderr).toContain('--as NAME');
    expect([other.exitCode, other.stderr]).toEqual([3, expect.stringContaining('--allow-shared-lineage')]);
  });

  test('tells in a dry run what it would do, and does nothing', async () => {
    await exportSample();
    const { exitCode, stdout } = await call(
      'import',
      'archive',
      'n.klstate',
      '--as',
      'never',
      '--allow-shared-lineage',
      '--dry-run',
    );
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^As +a new active state$/m)]);
    expect((await call('status', 'never')).exitCode).toBe(3);
  });

  test('overwrites only what is named together with its serial', async () => {
    await exportSample();
    await importSample('over');
    const over = (...more: string[]) =>
      call(
        'import',
        'archive',
        'n.klstate',
        '--as',
        'over',
        '--overwrite',
        '--allow-shared-lineage',
        ...more,
      );
    const [unsaid, stale, mistyped] = await Promise.all([
      over(),
      over('--confirm', 'over', '--expect-serial', '9'),
      over('--confirm', 'ovre', '--expect-serial', '10'),
    ]);
    expect(unsaid.exitCode).toBe(2);
    expect([stale.exitCode, stale.stderr]).toEqual([3, expect.stringContaining('STALE_DESTINATION')]);
    expect([mistyped.exitCode, mistyped.stderr]).toEqual([
      3,
      expect.stringContaining('CONFIRMATION_MISMATCH'),
    ]);
    const done = await over('--confirm', 'over', '--expect-serial', '10');
    expect([done.exitCode, done.stdout]).toEqual([0, expect.stringContaining('history is replaced')]);
  });

  test('sends nothing of an archive that is damaged', async () => {
    await exportSample();
    const bytes = await readFile(join(directory, 'n.klstate'));
    await writeFile(join(directory, 'cut.klstate'), bytes.subarray(0, bytes.length - 20));
    const uploads = async (): Promise<string[]> =>
      (await service.database.pool.query('select id from state_archive.upload')).rows.map(({ id }) => id);
    const before = await uploads();
    const { exitCode, stderr } = await call('import', 'archive', 'cut.klstate', '--yes');
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining('ARCHIVE_TRUNCATED')]);
    // Those of imports before may be going still.
    expect(before).toEqual(expect.arrayContaining(await uploads()));
  });

  test('brings a directory of archives back, and leaves what is there already as it is', async () => {
    await exportSample();
    await importSample('leave/one');
    await json('export', 'states', 'leave/*', '-o', 'left');
    await json('export', 'states', 'demo/network', '-o', 'left');
    const there = await json<{ outcome: string }[]>('import', 'archives', 'left', '--yes');
    expect(there.map(({ outcome }) => outcome)).toEqual(['ALREADY_THERE', 'ALREADY_THERE']);
    await sql`update public.states set lifecycle_status = 'archived', name = 'gone' where name = 'leave/one'`.execute(
      service.database.for('record'),
    );
    const mixed = await kl(['import', 'archives', 'left', '--yes'], { env, cwd: directory });
    expect(mixed.stdout).toMatch(/^demo\/network\.klstate +demo\/network +already there +10$/m);
    expect([mixed.exitCode, mixed.stdout]).toEqual([3, expect.stringContaining('FAILED: LINEAGE_IN_USE')]);
  });

  test('appends a snapshot from a pipe, after it has said its serial and lineage', async () => {
    const document = await readFile(new URL('../fixtures/terraform-history/001.tfstate', import.meta.url));
    const { exitCode, stdout, stderr } = await kl(['import', 'snapshot', '-', '--name', 'snap', '--yes'], {
      env,
      input: document,
    });
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^Serial +1\nLineage +1ca0929b-/m);
    expect(stdout).toMatch(/^Serial +1$/m);
    const [refused, unasked] = await Promise.all([
      kl(['import', 'snapshot', '-', '--name', 'snap', '--yes'], { env, input: '{"version": 3}' }),
      kl(['import', 'snapshot', '-', '--name', 'snap'], { env, input: document }),
    ]);
    expect([refused.exitCode, refused.stderr]).toEqual([
      5,
      expect.stringContaining('UNSUPPORTED_STATE_DOCUMENT'),
    ]);
    expect(unasked.exitCode).toBe(2);
  });
});

describe('kl archive, with a service', () => {
  test('compares an archive with what the service holds now, and two states that it holds', async () => {
    await exportSample();
    await importSample('ahead');
    const same = await call('archive', 'diff', 'n.klstate', 'ahead');
    expect([same.exitCode, same.stdout]).toEqual([0, expect.stringContaining('hold the same history')]);
    const document = await readFile(new URL('../fixtures/terraform-history/009.tfstate', import.meta.url));
    const next = document.toString().replace('"serial": 9', '"serial": 11');
    await kl(['import', 'snapshot', '-', '--name', 'ahead', '--yes'], { env, input: next });
    const { exitCode, stdout } = await call('archive', 'diff', 'n.klstate', 'ahead');
    expect([exitCode, stdout]).toEqual([
      1,
      expect.stringContaining('n.klstate is the beginning of ahead, which has 1 more version, serial 11'),
    ]);
    const states = await call('archive', 'diff', 'demo/network', 'ahead');
    expect([states.exitCode, states.stdout]).toEqual([
      1,
      expect.stringContaining('demo/network is the beginning of ahead'),
    ]);
    const versions = await call('archive', 'diff', 'ahead@10', 'n.klstate@10');
    expect(versions.exitCode).toBe(0);
    const against = await call('archive', 'verify', 'n.klstate', '--against', 'ahead');
    expect([against.exitCode, against.stdout]).toEqual([1, expect.stringContaining('ANOTHER HISTORY')]);
  });
});

describe('kl status, operations, whoami and login', () => {
  test('say how a state stands, and whether it changed since its last export', async () => {
    await exportSample();
    const { stdout } = await call('status', 'demo/network');
    expect(stdout).toMatch(/^Exportable +yes$/m);
    expect(stdout).toMatch(/^Since then +unchanged$/m);
    expect((await call('status')).stdout).toMatch(/^demo\/network +10 +10 +- +\S+ +unchanged$/m);
    const [newest] = await json<{ id: string; kind: string; status: string }[]>('operations', 'demo/*');
    expect(newest).toMatchObject({ kind: 'EXPORT', status: 'SUCCEEDED' });
    const watched = await call('status', newest?.id ?? '', '--watch');
    expect([watched.exitCode, watched.stdout]).toEqual([0, expect.stringMatching(/^Status +SUCCEEDED$/m)]);
  });

  test('call off only what has not ended', async () => {
    await exportSample();
    const [ended] = await json<{ id: string }[]>('operations', 'demo/*');
    const refused = await call('cancel', ended?.id ?? '');
    expect([refused.exitCode, refused.stderr]).toEqual([
      3,
      expect.stringContaining('OPERATION_NOT_CANCELLABLE'),
    ]);
    const unknown = await call('cancel', '00000000-0000-4000-8000-000000000000');
    expect([unknown.exitCode, unknown.stderr]).toEqual([3, expect.stringContaining('OPERATION_NOT_FOUND')]);
    // One that is waiting for its turn, as long as this test says so.
    const pending = sql`update state_archive.operation set status = 'PENDING', started_at = null, finished_at = null,
      expires_at = null where id = ${ended?.id}`;
    await pending.execute(service.database.for('record'));
    const { exitCode, stdout } = await call('cancel', ended?.id ?? '');
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Status +CANCELLED$/m)]);
  });

  test('keep a token only once the service has accepted it, say where before, and for its owner alone', async () => {
    const { KL_TOKEN: token = '', KL_ENDPOINT: endpoint = '' } = env;
    const home = { KL_ENDPOINT: endpoint, HOME: directory };
    const [refused, unknown] = await Promise.all([
      kl(['login'], { env: home, input: 'nonsense\n' }),
      kl(['whoami'], { env: home }),
    ]);
    expect([refused.exitCode, refused.stderr]).toEqual([4, expect.stringContaining('UNAUTHENTICATED')]);
    expect(unknown.exitCode).toBe(4);

    const path = join(directory, '.config/kilolock-state-archive/credentials.json');
    const kept = await kl(['login'], { env: home, input: `${token}\n` });
    expect([kept.exitCode, kept.stderr]).toEqual([0, expect.stringContaining(path)]);
    expect(kept.stdout + kept.stderr).not.toContain(token);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    // Without a variable: the endpoint of the last login.
    const { exitCode, stdout } = await kl(['whoami'], { env: { HOME: directory } });
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Scopes +state\.export state\.import/m)]);
    expect(stdout).toMatch(/^Subject +alice@test$/m);
    expect(stdout).toMatch(/^Expires +20\d\d-/m);
    expect(stdout).not.toContain(token);
  });
});

describe('in another workspace and environment', () => {
  test('support looks, takes a history home and brings it, with its reason on record', async () => {
    await createEnvironment(service.database, 'ws_kl', 'env_kl');
    const KL_TOKEN = await service.token({
      subject: 'support@test',
      scopes: ['state.read', 'state.export', 'state.import', 'state.support'],
    });
    const there = ['--workspace', 'ws_kl', '--environment', 'env_kl'];
    const support = (...args: string[]) =>
      kl([...args, ...there], { env: { ...env, KL_TOKEN }, cwd: directory });
    const why = ['--reason', 'ticket 7'];
    await exportSample();
    const unsaid = await support('status');
    expect(unsaid.exitCode).not.toBe(0);
    const imported = await support('import', 'archive', 'n.klstate', '--yes', ...why);
    expect([imported.exitCode, imported.stdout]).toEqual([0, expect.stringMatching(/^Digest equal +yes/m)]);
    const [listed, exported] = await Promise.all([
      support('status', ...why),
      support('export', 'state', 'demo/network', '-o', 'there.klstate', ...why),
    ]);
    expect([listed.exitCode, listed.stdout]).toEqual([0, expect.stringContaining('demo/network')]);
    expect([exported.exitCode, exported.stderr]).toEqual([0, expect.stringContaining('To check it later')]);
    const { rows } = await service.database.pool.query(
      "select distinct support_reason as reason from state_archive.operation where actor = 'support@test'",
    );
    expect(rows).toEqual([{ reason: 'ticket 7' }]);
  });
});

test('the nightly script of docs/kl.md keeps an environment, and its drill brings it back into an empty one', async () => {
  const page = await readFile(new URL('../../docs/kl.md', import.meta.url), 'utf8');
  const section = page.split('## Keeping an environment')[1]?.split('\n## ')[0] ?? '';
  const [nightly = '', drill = ''] = [...section.matchAll(/```sh\n(.*?)```/gs)].map(([, script]) => script);
  const tokenOf = async (environment: string) => {
    await createEnvironment(service.database, 'ws_kept', environment);
    return service.token({ workspace: 'ws_kept', environment });
  };
  const token = await tokenOf('env_kept');
  await writeFile(join(directory, 'token'), `${token}\n`);
  // Keeps what it is given, by its whole path, and gives it back.
  const restic = `#!/bin/sh
case $1 in
  backup) mkdir repository && cp -R --parents "$2" repository ;;
  restore) cp -R repository "$4" ;;
esac`;
  await writeFile(join(directory, 'restic'), restic, { mode: 0o755 });
  const run = (script: string, KL_TOKEN: string) =>
    promisify(execFile)('sh', ['-ec', script], {
      cwd: directory,
      env: { PATH: `${dirname(KL)}:${directory}:${process.env.PATH}`, HOME: directory, KL_TOKEN },
    });
  const here = (script: string) =>
    script
      .replaceAll('/tmp/drill/srv', `${directory}/drill${directory}/srv`)
      .replaceAll('/tmp/drill', `${directory}/drill`)
      .replaceAll(/ \/srv\/kept/g, ` ${directory}/srv/kept`)
      .replaceAll('/etc/kl/token', `${directory}/token`)
      .replaceAll(/https:\/\/[\w.-]+\/graphql/g, `${service.url}/graphql`)
      .replaceAll('KL_TOKEN=…', 'KL_TOKEN');

  await exportSample();
  await kl(['import', 'archive', 'n.klstate', '--yes'], { env: { ...env, KL_TOKEN: token }, cwd: directory });
  await run(here(nightly), '');
  expect(await readFile(join(directory, 'srv/kept/verified.txt'), 'utf8')).toMatch(/^Complete +yes/m);
  const { stdout } = await run(here(drill), await tokenOf('env_drill'));
  expect(stdout).toMatch(/could be imported[\s\S]* imported [\s\S]*^demo\/network +10 /m);
});

describe('an exit code says what to do:', () => {
  test('2 for a command line that cannot be used, with what may have been meant', async () => {
    const [unknown, ...others] = await Promise.all([
      call('exprot', 'state', 'x'),
      kl(['status']),
      call('export', 'state', 'x', '--if-changed', 'y'),
      call('status', '--workspace', 'ws_1'),
    ]);
    expect([unknown.exitCode, unknown.stderr]).toEqual([2, expect.stringContaining('Did you mean export?')]);
    expect(others.map(({ exitCode }) => exitCode)).toEqual([2, 2, 2]);
  });

  test('3 for what is refused, 4 for a credential that may not', async () => {
    const KL_TOKEN = await service.token({ scopes: ['state.read'] });
    const [missing, denied, ...others] = await Promise.all([
      call('export', 'state', 'no-such-state'),
      kl(['export', 'state', 'demo/network', '-o', 'x'], { env: { ...env, KL_TOKEN }, cwd: directory }),
      kl(['status'], { env: { ...env, KL_TOKEN: 'nonsense' } }),
      kl(['status'], { env: { KL_ENDPOINT: `${service.url}/graphql` } }),
    ]);
    expect(missing.exitCode).toBe(3);
    expect([denied.exitCode, denied.stderr]).toEqual([4, expect.stringContaining('FORBIDDEN')]);
    expect(others.map(({ exitCode }) => exitCode)).toEqual([4, 4]);
    expect(await readdir(directory)).toEqual([]);
  });

  test('6 where nobody answers, 1 where something else does, and 2 where 1 would say that there is a difference', async () => {
    await exportSample();
    const [away, elsewhere, ...comparing] = await Promise.all([
      kl(['status'], { env: { ...env, KL_ENDPOINT: 'http://127.0.0.1:1/graphql' } }),
      ...[
        ['status'],
        ['archive', 'verify', 'n.klstate', '--against', 'x'],
        ['archive', 'diff', 'x', 'y'],
      ].map((args) => kl(args, { env: { ...env, KL_ENDPOINT: `${service.url}/livez` }, cwd: directory })),
    ]);
    expect([away.exitCode, away.stderr]).toEqual([6, expect.stringContaining('UNREACHABLE')]);
    expect(elsewhere?.exitCode).toBe(1);
    expect(comparing.map(({ exitCode }) => exitCode)).toEqual([2, 2]);
  });

  test('and an error is JSON where JSON was asked for', async () => {
    const [{ stdout, stderr }, mistyped] = await Promise.all([
      call('status', 'no-such-state', '--format', 'json'),
      call('status', '--wtach', '--format', 'json'),
    ]);
    expect([mistyped.exitCode, JSON.parse(mistyped.stderr)]).toEqual([
      2,
      {
        error: {
          code: 'USAGE',
          message: "Unknown option '--wtach'.",
          advice: 'Did you mean --watch? Add --help to see what it takes.',
          exitCode: 2,
        },
      },
    ]);
    expect(stdout).toBe('');
    expect(JSON.parse(stderr)).toEqual({
      error: { code: 'STATE_NOT_FOUND', message: expect.any(String), advice: null, exitCode: 3 },
    });
  });
});
