import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type ArchiveClient, ArchiveService, type Exported } from './archive-service.ts';
import { Kld } from './kilolock.ts';
import type { Database, Postgres } from './postgres.ts';
import type { Processes } from './processes.ts';
import type { ProgramName, Programs } from './programs.ts';
import type { Report } from './report.ts';
import { WorkingDirectory, type WorkingDirectoryOptions } from './working-directory.ts';

/** One Kilolock, and this project's service on the same database. */
export interface Backend {
  readonly name: 'A' | 'B';
  readonly database: Database;
  readonly kld: Kld;
  readonly service: ArchiveService;
  /** The service as somebody sees it who may do anything. */
  readonly archives: ArchiveClient;
}

/** Everything the parts share. What they start here ends with it. */
export class Stage {
  readonly report: Report;
  readonly processes: Processes;
  readonly programs: Programs;
  readonly postgres: Postgres;
  /** For files of the run; they go with it. */
  readonly directory: string;
  /** Aborted when the run is called off. */
  readonly interruption: AbortSignal;
  /** Kilolock's migrations as files, where they are at hand. */
  readonly migrations: string | undefined;
  /** Where Terraform and `kl` work, by the state they work on; none where these are missing. */
  readonly works = new Map<string, WorkingDirectory>();
  /** The archives of A's states, by name. */
  readonly exports = new Map<string, Exported>();
  readonly #started: { stop(): Promise<void> }[] = [];
  #backends: Promise<readonly [a: Backend, b: Backend]> | undefined;

  constructor(shared: {
    readonly report: Report;
    readonly processes: Processes;
    readonly programs: Programs;
    readonly postgres: Postgres;
    readonly directory: string;
    readonly migrations: string | undefined;
    readonly interruption: AbortSignal;
  }) {
    this.report = shared.report;
    this.processes = shared.processes;
    this.programs = shared.programs;
    this.postgres = shared.postgres;
    this.directory = shared.directory;
    this.migrations = shared.migrations;
    this.interruption = shared.interruption;
  }

  /** Whether programs are at hand. */
  has(...names: readonly ProgramName[]): boolean {
    return names.every((name) => this.programs.has(name));
  }

  /** The working directory of a state that an earlier part has written. */
  work(state: string): WorkingDirectory {
    const work = this.works.get(state);
    if (work === undefined) throw new Error(`Nobody works on ${state}.`);
    return work;
  }

  /** The archive of a state that an earlier part has exported from A. */
  exported(state: string): Exported {
    const exported = this.exports.get(state);
    if (exported === undefined) throw new Error(`${state} was not exported.`);
    return exported;
  }

  /** The path of a program that the part has said it needs. */
  program(name: ProgramName): string {
    const path = this.programs.get(name);
    if (path === undefined) throw new Error(`${name} is missing.`);
    return path;
  }

  /** Two Kilolocks, A and B, that know nothing of each other. */
  readonly backends = (): Promise<readonly [a: Backend, b: Backend]> => {
    this.#backends ??= (async () =>
      [await this.#startBackend('A'), await this.#startBackend('B')] as const)();
    return this.#backends;
  };

  /** A further kld, on a database. */
  async startKld(database: Database, environment: Readonly<Record<string, string>> = {}): Promise<Kld> {
    return this.own(
      await Kld.start({
        program: this.program('kld'),
        processes: this.processes,
        directory: this.directory,
        connectionString: database.connectionString,
        environment,
      }),
    );
  }

  /** A further service of this project. */
  async startService(
    name: string,
    connectionString: string,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<ArchiveService> {
    const dataDirectory = join(this.directory, `service-${name}`);
    await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
    return this.own(
      await ArchiveService.start({ processes: this.processes, dataDirectory, connectionString, environment }),
    );
  }

  /** A directory to work in with Terraform and `kl`. */
  async workingDirectory(
    name: string,
    options: Pick<WorkingDirectoryOptions, 'kld' | 'state' | 'credential'>,
  ): Promise<WorkingDirectory> {
    return WorkingDirectory.create({
      ...options,
      processes: this.processes,
      programs: { terraform: this.program('terraform'), kl: this.program('kl') },
      directory: join(this.directory, `work-${name}`),
    });
  }

  /** Makes and names a new directory. */
  async scratch(name: string): Promise<string> {
    const path = join(this.directory, name);
    await mkdir(path, { recursive: true });
    return path;
  }

  /** Has something stopped at the end, before what was started earlier. */
  own<Started extends { stop(): Promise<void> }>(started: Started): Started {
    this.#started.push(started);
    return started;
  }

  /** Stops everything, the last first. */
  async stop(): Promise<void> {
    for (const each of this.#started.splice(0).reverse()) {
      await each.stop().catch((error: unknown) => this.report.note(`Could not stop: ${String(error)}`));
    }
  }

  async #startBackend(name: 'A' | 'B'): Promise<Backend> {
    const database = await this.postgres.create(name.toLowerCase());
    const kld = await this.startKld(database);
    const service = await this.startService(name, database.connectionString);
    return { name, database, kld, service, archives: service.as(await service.token()) };
  }
}
