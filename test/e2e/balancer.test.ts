import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from '@jest/globals';
import { Machine } from '../chaos/machines.ts';
import { createTestDatabase } from '../support/database.ts';
import { freePort } from '../support/free-port.ts';
import { cleanUp, temporaryDirectory } from './support/processes.ts';

const CADDYFILE = new URL('../../examples/compose/Caddyfile', import.meta.url);
const PATIENCE_MS = 60_000;
const hasCaddy = await new Promise<boolean>((resolve) =>
  execFile('caddy', ['version'], (error) => resolve(error === null)),
);

interface CaddyLogLine {
  readonly msg: string;
  readonly host?: string;
}

afterEach(cleanUp);

(hasCaddy ? test : test.skip)(
  'behind the balancer of examples/compose nobody notices that replicas restart one after the other (skipped without Caddy)',
  async () => {
    const { connectionString, drop } = await createTestDatabase();
    const directory = await temporaryDirectory();
    await mkdir(directory);
    const replicas = await Promise.all(
      ['replica-1', 'replica-2'].map(async (name) => {
        const environment = {
          DATABASE_URL: connectionString,
          DATA_DIR: join(directory, name),
          ARCHIVE_STORE_URL: `file://${join(directory, 'store')}`,
          LINK_KEYS: 'the links of two replicas behind a balancer',
          AUTH_DEV_KEY: 'true',
          // As compose.yaml has it.
          DRAIN_SECONDS: '10',
        };
        const replica = new Machine(name, 'replica', { port: await freePort(), environment });
        replica.start();
        await replica.ready;
        return replica;
      }),
    );

    const port = await freePort();
    const caddyfile = replicas.reduce(
      (text, { name, url }) => text.replace(`${name}:4001`, new URL(url).host),
      (await readFile(CADDYFILE, 'utf8')).replace('\n:4001 {', `\n:${port} {`),
    );
    await writeFile(join(directory, 'Caddyfile'), `{\n\tadmin off\n}\n${caddyfile}`);
    const caddy = spawn(
      'caddy',
      ['run', '--config', join(directory, 'Caddyfile'), '--adapter', 'caddyfile'],
      {
        env: { PATH: process.env.PATH, HOME: directory },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    const lines = createInterface(caddy.stderr);
    const logged = (isMeant: (line: CaddyLogLine) => boolean) =>
      new Promise<void>((resolve) => {
        lines.on('line', function look(text) {
          if (!isMeant(JSON.parse(text))) return;
          lines.off('line', look);
          resolve();
        });
      });
    const ask = async () => {
      try {
        const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ query: '{ __typename }' }),
        });
        return `${response.status} ${await response.text()}`;
      } catch (error) {
        return `none: ${(error as Error).cause}`;
      }
    };
    try {
      await logged(({ msg }) => msg === 'serving initial configuration');
      const answer = await ask();
      expect(answer).toBe('200 {"data":{"__typename":"Query"}}\n');

      let isOver = false;
      const answers = new Map<string, number>();
      const asking = (async () => {
        while (!isOver) {
          const answer = await ask();
          answers.set(answer, (answers.get(answer) ?? 0) + 1);
          await pause(20);
        }
      })();
      for (const replica of replicas) {
        expect(await replica.stop(PATIENCE_MS)).toBe('ended');
        const { host } = new URL(replica.url);
        const isSentToAgain = logged((line) => line.msg === 'host is up' && line.host === host);
        replica.start();
        await isSentToAgain;
      }
      isOver = true;
      await asking;
      expect([...answers.keys()]).toEqual([answer]);
    } finally {
      caddy.kill();
      await once(caddy, 'exit');
      await Promise.all(replicas.map((replica) => replica.stop(0)));
      await drop();
    }
  },
);
