import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { parseDocument } from 'yaml';
import { present } from '../../../src/base/invariant.ts';

/** A gateway of `examples/gateways`, as a process of its own. */
export interface Gateway {
  /** Where it answers GraphQL. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a program of `examples/gateways` on a supergraph, with no environment but the one given. */
export function startGateway(
  program: string,
  supergraph: string,
  environment: Readonly<Record<string, string>>,
): Promise<Gateway> {
  return start(supergraph, /^(?<url>.+)$/, (file) =>
    spawn(process.execPath, [example(program)], {
      env: { NODE_ENV: 'production', PORT: '0', SUPERGRAPH: file, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  );
}

/** Where Apollo Router is on this machine; undefined when it is not. */
export const apolloRouter = (process.env.PATH ?? '')
  .split(delimiter)
  .map((directory) => join(directory, 'router'))
  .find((path) => existsSync(path));

/**
 * Starts Apollo Router with `router.yaml` of `examples/gateways`, on a port of its own, and without the sections that it
 * refuses when it has no licence.
 */
export function startApolloRouter(
  supergraph: string,
  environment: Readonly<Record<string, string>>,
): Promise<Gateway> {
  const program = present(apolloRouter, 'there is an Apollo Router');
  return start(supergraph, /GraphQL endpoint exposed at (?<url>http[^\s"]+)/, async (file) => {
    const path = join(dirname(file), 'router.yaml');
    const config = parseDocument(await readFile(example('router.yaml'), 'utf8'));
    config.setIn(['supergraph', 'listen'], '127.0.0.1:0');
    config.setIn(['health_check', 'enabled'], false);
    for (const licensed of ['authentication', 'authorization']) config.delete(licensed);
    await writeFile(path, String(config));
    return spawn(program, ['--config', path, '--supergraph', file, '--log', 'info'], {
      env: { APOLLO_TELEMETRY_DISABLED: 'true', ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  });
}

async function start(
  supergraph: string,
  listening: RegExp,
  run: (
    supergraph: string,
  ) => ChildProcessByStdio<null, Readable, null> | Promise<ChildProcessByStdio<null, Readable, null>>,
): Promise<Gateway> {
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-gateway-'));
  const file = join(directory, 'supergraph.graphql');
  await writeFile(file, supergraph);
  const child = await run(file);
  const killAtExit = () => child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const ended = once(child, 'close').then(() => process.off('exit', killAtExit));
  const lines: string[] = [];
  const { promise: isListening, resolve: listens } = Promise.withResolvers<string>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    const url = listening.exec(line)?.groups?.url;
    if (url !== undefined) listens(url);
  });
  const url = await Promise.race([
    isListening,
    ended.then(() => {
      throw new Error(`The gateway ended before it listened: ${lines.join('\n')}`);
    }),
  ]);
  return {
    url,
    async stop() {
      child.kill('SIGKILL');
      await ended;
      await rm(directory, { recursive: true });
    },
  };
}

function example(name: string): string {
  return fileURLToPath(new URL(`../../../examples/gateways/${name}`, import.meta.url));
}
