import { openAsBlob } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { styleText } from 'node:util';
import pino from 'pino';
import { verifyArchive } from '../archive/reader.ts';
import { loadOrCreateDevelopmentKey, signDevelopmentToken } from '../auth/development-key.ts';
import { present } from '../base/invariant.ts';
import { blameOperator, exitWith } from '../base/operator-error.ts';
import { type Config, readConfig, readDataDirectory } from '../config.ts';
import { connectDatabase, type KilolockDatabase } from '../database/connection.ts';
import { prepareControlDatabase } from '../database/prepare.ts';
import { DOCUMENTS } from '../kl/documents.ts';
import { type ExportedFile, exportState } from '../kl/export-state.ts';
import { waitForEnd } from '../kl/operations.ts';
import { Work } from '../kl/progress.ts';
import { Service } from '../kl/service.ts';
import { historyOf } from '../kl/states.ts';
import { startService } from '../service.ts';
import { type EmbeddedServer, startEmbeddedServer } from './embedded-server.ts';
import { createKilolockTables } from './kilolock-tables.ts';
import { loadSampleHistory, SAMPLE_LABEL } from './sample-history.ts';

/**
 * @file The main job in one go: a real Terraform history goes out of one backend to a file, and from the file into
 * another backend, over HTTP as a client would do it. Ends with 0 when all three history digests agree.
 */

/** Nobody looks how far it is. */
const WORK = new Work('demo', () => {});

// Without listeners a signal ends the process past its exit handlers, and the server would stay behind.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await demo().catch(exitWith);

async function demo(): Promise<void> {
  const directory = join(readDataDirectory(process.env), 'demo');
  await emptyDirectory(directory).catch(blameOperator('DATA_DIR cannot be used'));
  const server = await startEmbeddedServer({
    dataDirectory: join(directory, 'postgres'),
    durable: false,
    onDeath: exitWith,
  });
  try {
    const source = await startBackend(server, directory, 'source');
    const destination = await startBackend(server, directory, 'destination');
    try {
      await showRoundTrip(source, destination, directory);
    } finally {
      await source.close();
      await destination.close();
    }
  } finally {
    await server.stop();
  }
}

async function emptyDirectory(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
  await mkdir(path, { recursive: true, mode: 0o711 });
}

async function showRoundTrip(source: Backend, destination: Backend, directory: string): Promise<void> {
  await loadSampleHistory(source.database);
  say('Source', `${SAMPLE_LABEL} in a Kilolock database, as Terraform 1.11.4 posted it`);
  const preview = await historyOf(source.client, SAMPLE_LABEL);
  tell('versions', preview.versionCount);
  tell('tags', preview.tagCount);
  tell('raw state bytes', preview.rawBytes);
  tell('history digest', preview.historyDigest);

  say('Export', 'the whole history to one file');
  const path = join(directory, 'exported.klstate');
  const archive = await exportTo(path, source);
  tell('archive', relative(process.cwd(), path));
  tell('archive size', `${archive.sizeBytes} bytes`);
  tell('archive SHA-256', archive.sha256);

  say('Verify', 'the file by itself, without a database');
  const verified = await verifyArchive(path);
  tell('members agree', `${verified.counts.versions} raw states, every sum and count`);
  tell('audit events', verified.counts.events);
  tell('resource spans', verified.counts.resources);
  tell('history digest', verified.historyDigest);

  say('Restore', 'into a second, empty Kilolock database');
  const file = new File([await openAsBlob(path)], basename(path));
  const { operation } = await destination.client.change(
    DOCUMENTS.importArchive,
    { expectedSha256: archive.sha256, waitSeconds: 25 },
    file,
  );
  const begun = present(operation, 'it was not refused');
  const ended = await waitForEnd(destination.client, begun, WORK);
  const report = present(ended.report, 'an import that has ended well has one');
  tell('versions', report.versionCount);
  tell('tags', report.tagCount);
  tell('resource spans', report.resourceSpanCount);
  tell('outputs', report.outputCount);
  const restored = await historyOf(destination.client, SAMPLE_LABEL);
  tell('history digest', restored.historyDigest);

  say('Export again', 'from the second database');
  const second = await exportTo(join(directory, 'exported-again.klstate'), destination);
  tell('history digest', second.historyDigest);

  const digests = [
    preview.historyDigest,
    verified.historyDigest,
    restored.historyDigest,
    second.historyDigest,
  ];
  const agree = new Set(digests).size === 1;
  process.stdout.write(
    agree
      ? styleText('green', '\nThe digests agree: nothing was lost, nothing was altered.\n')
      : styleText('red', '\nThe digests differ: the history did not survive.\n'),
  );
  if (!agree) process.exitCode = 1;
}

interface Backend {
  readonly database: KilolockDatabase;
  readonly client: Service;
  close(): Promise<void>;
}

async function startBackend(server: EmbeddedServer, directory: string, name: string): Promise<Backend> {
  await server.createDatabase(name);
  const database = connectDatabase({ connectionString: server.connectionString(name) });
  await createKilolockTables(database);
  await prepareControlDatabase(database);
  const config: Config = readConfig({ DATA_DIR: join(directory, name), PORT: '0' });
  const service = await startService(config, database, pino({ level: 'error' }));
  const token = await signDevelopmentToken(await loadOrCreateDevelopmentKey(config.dataDirectory), {
    subject: 'demo@localhost',
    scopes: ['state.read', 'state.export', 'state.import'],
    ttlSeconds: 600,
  });
  return {
    database,
    client: new Service(`${service.url}/graphql`, token, new AbortController().signal),
    async close() {
      await service.close();
      await database.close();
    },
  };
}

/** Exports the sample as `kl` does. */
function exportTo(path: string, { client }: Backend): Promise<ExportedFile> {
  const exported = { name: SAMPLE_LABEL, path, historyDigest: null, replace: false, identity: null };
  return exportState(client, exported, WORK);
}

function say(step: string, what: string): void {
  process.stdout.write(`\n${styleText('bold', step)}  ${what}\n`);
}

function tell(name: string, value: string | number): void {
  process.stdout.write(`  ${name.padEnd(16)} ${value}\n`);
}
