import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { promisify } from 'node:util';

/** The major version of a program of PostgreSQL, such as 18; null when it is not on the PATH. */
export async function majorVersion(program: string): Promise<number | null> {
  const text = await versionText(program);
  const [, major] = /(\d+)/.exec(text ?? '') ?? [];
  return major === undefined ? null : Number(major);
}

/** Whether a program is on the PATH. */
export async function isThere(program: string): Promise<boolean> {
  return (await versionText(program)) !== null;
}

async function versionText(program: string): Promise<string | null> {
  return promisify(execFile)(program, ['--version']).then(
    ({ stdout }) => stdout,
    () => null,
  );
}

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: string[]];

/** Runs a program of PostgreSQL on a database, its output going into another program if one is given. */
export async function runOnDatabase(
  connectionString: string,
  [program, ...args]: Command,
  into?: Command,
): Promise<void> {
  const url = new URL(connectionString);
  const env = {
    PATH: process.env.PATH,
    PGHOST: url.hostname,
    PGPORT: url.port,
    PGUSER: decodeURIComponent(url.username),
    PGPASSWORD: decodeURIComponent(url.password),
    PGDATABASE: decodeURIComponent(url.pathname.slice(1)),
  };
  let target: Writable | null = null;
  const ends: Promise<void>[] = [];
  if (into !== undefined) {
    const [intoProgram, ...intoArgs] = into;
    const child = spawn(intoProgram, intoArgs, { stdio: ['pipe', 'ignore', 'inherit'] });
    ends.push(success(intoProgram, child));
    target = child.stdin;
  }
  // The first program gets the very pipe: nothing of what goes through it passes this process.
  const child = spawn(program, args, { env, stdio: ['ignore', target ?? 'ignore', 'inherit'] });
  ends.push(success(program, child));
  target?.destroy();
  await Promise.all(ends);
}

async function success(program: string, child: ReturnType<typeof spawn>): Promise<void> {
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${program} ended with exit code ${code}.`);
}
