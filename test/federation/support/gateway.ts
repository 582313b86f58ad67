import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A gateway of `examples/gateways`, as a process of its own. */
export interface Gateway {
  /** Where it answers GraphQL. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a program of `examples/gateways` on a supergraph, with no environment but the one given. */
export async function startGateway(
  program: string,
  supergraph: string,
  environment: Readonly<Record<string, string>>,
): Promise<Gateway> {
  const directory = await mkdtemp(join(tmpdir(), 'state-archive-gateway-'));
  const file = join(directory, 'supergraph.graphql');
  await writeFile(file, supergraph);
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL(`../../../examples/gateways/${program}`, import.meta.url))],
    {
      env: { NODE_ENV: 'production', PORT: '0', SUPERGRAPH: file, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const killAtExit = () => child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const ended = once(child, 'close').then(() => process.off('exit', killAtExit));
  const url = await Promise.race([
    once(createInterface({ input: child.stdout }), 'line').then(([line]) => String(line)),
    ended.then(() => {
      throw new Error(`${program} ended before it listened.`);
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
