import { parseArgs } from 'node:util';
import type { Part } from './part.ts';
import { findPrograms, type Programs } from './programs.ts';

/** How the checks are run. */
export interface Options {
  readonly programs: Programs;
  /** A PostgreSQL server to create databases on; absent: the embedded one. */
  readonly databaseUrl: string | undefined;
  /** The directory of Kilolock's migrations. */
  readonly migrations: string | undefined;
  /** What to run, in order. */
  readonly parts: readonly Part[];
}

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export const USAGE = `npm run interop -- [--kld PATH] [--kl PATH] [--klc PATH] [--terraform PATH] [--migrations DIR]
                   [--database URL] [--only PART,PART]

The whole job against a real Kilolock: histories are written by Terraform and kl to one kld, exported, restored
into another, compared row by row, and gone on with there.

  --kld, --kl, --klc     Kilolock's programs; else KLD, KL, KLC, or by their names in PATH
  --terraform            Terraform or OpenTofu; else TERRAFORM, or "terraform" in PATH
  --migrations           pkg/migrate/migrations of Kilolock's source, to try databases of older releases;
                         else KILOLOCK_MIGRATIONS, or these checks are skipped
  --database             a PostgreSQL server on which databases and roles may be created; else TEST_DATABASE_URL,
                         or the embedded one
  --only                 these parts, and those they build on

What needs a missing program is skipped. zstd, tar and sha256sum are taken from PATH. Everything listens on
127.0.0.1 and free ports, and nothing is left behind.
`;

/**
 * Reads the command line and the environment.
 *
 * @throws UsageError naming what is not understood.
 */
export function readOptions(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  allParts: readonly Part[],
): Options | 'help' {
  const flags = parse(args);
  if (flags.help) return 'help';
  const { kld = env.KLD, kl = env.KL, klc = env.KLC, terraform = env.TERRAFORM } = flags;
  return {
    programs: findPrograms({ kld, kl, klc, terraform }),
    databaseUrl: flags.database ?? env.TEST_DATABASE_URL,
    migrations: flags.migrations ?? env.KILOLOCK_MIGRATIONS,
    parts: choose(allParts, flags.only?.split(',')),
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    return parseArgs({
      args: [...args],
      options: {
        kld: text,
        kl: text,
        klc: text,
        terraform: text,
        migrations: text,
        database: text,
        only: text,
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${USAGE}`);
  }
}

function choose(allParts: readonly Part[], names: readonly string[] | undefined): readonly Part[] {
  if (names === undefined) return allParts;
  const chosen = new Set<Part>();
  const choose = (part: Part) => {
    part.after.forEach(choose);
    chosen.add(part);
  };
  for (const name of names) {
    const part = allParts.find((each) => each.name === name);
    if (part === undefined) throw new UsageError(`There is no part "${name}": see --help.`);
    choose(part);
  }
  return allParts.filter((part) => chosen.has(part));
}
