import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BenchDatabase, BenchServer } from './databases.ts';
import { insertHistory } from './history/insert.ts';
import type { HistoryShape } from './history/shape.ts';
import { exportArchive } from './service/jobs.ts';
import { startBenchService } from './service/service.ts';

/** An archive of a generated history. */
export interface HistoryArchive {
  readonly path: string;
  readonly historyDigest: string;
  readonly sizeBytes: number;
  /** Of all raw states together. */
  readonly rawBytes: number;
  /** How long it took to make, in a new process. */
  readonly exportSeconds: number;
}

/** The generated histories of one run: each is made once, when it is first needed. */
export class Histories {
  readonly #server: BenchServer;
  readonly #directory: string;
  readonly #databases = new Map<string, Promise<BenchDatabase>>();
  readonly #archives = new Map<string, Promise<HistoryArchive>>();

  /** @param directory where archives are kept. */
  constructor(server: BenchServer, directory: string) {
    this.#server = server;
    this.#directory = directory;
  }

  /** A database that holds the history and nothing else. Not to be written to: {@link copy} is. */
  original(shape: HistoryShape): Promise<BenchDatabase> {
    return remembered(this.#databases, shape.name, async () => {
      const database = await this.#server.createDatabase(shape.name);
      await database.connected((client) => insertHistory(client, shape));
      return database;
    });
  }

  /** A database of one's own that holds the history. Drop it. */
  async copy(shape: HistoryShape): Promise<BenchDatabase> {
    return this.#server.createDatabase('copy', { copyOf: await this.original(shape) });
  }

  /** Gives back what a history takes on the disk; it is made anew when it is needed again. */
  async forget({ name }: HistoryShape): Promise<void> {
    const database = await this.#databases.get(name);
    const archive = await this.#archives.get(name)?.catch(() => undefined);
    this.#databases.delete(name);
    this.#archives.delete(name);
    await database?.drop();
    if (archive !== undefined) await rm(archive.path);
  }

  /** A database of one's own that holds no state. Drop it. */
  empty(): Promise<BenchDatabase> {
    return this.#server.createDatabase('empty');
  }

  /**
   * An archive of the history, made by the service. What it fails with once it fails with again.
   *
   * @throws JobFailedError when the service does not export the history.
   */
  archive(shape: HistoryShape): Promise<HistoryArchive> {
    return remembered(this.#archives, shape.name, async () => {
      const database = await this.copy(shape);
      const service = await startBenchService(database);
      try {
        const began = performance.now();
        const { historyDigest, sizeBytes, save } = await exportArchive(service, shape.name);
        const exportSeconds = (performance.now() - began) / 1000;
        const path = join(this.#directory, `${shape.name}.klstate`);
        await save(path);
        const [row] = await database.query<{ bytes: string }>(
          'select sum(byte_length) as bytes from state_archive.version_digest',
        );
        return { path, historyDigest, sizeBytes, rawBytes: Number(row?.bytes), exportSeconds };
      } finally {
        await service.stop();
        await database.drop();
      }
    });
  }
}

function remembered<Value>(
  known: Map<string, Promise<Value>>,
  name: string,
  make: () => Promise<Value>,
): Promise<Value> {
  const value = known.get(name) ?? make();
  known.set(name, value);
  return value;
}
