import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { Kld } from '../kilolock.ts';
import type { Part } from '../part.ts';

const NAME = 'locked';
const OPTIMISTIC = 'optimistic';
const RESOURCE = 'resource "terraform_data" "a" { input = 1 }\n';

/** A state document, as far as the checks change it. */
interface Document {
  serial: number;
  resources: { name: string; [field: string]: unknown }[];
}

export const locks: Part = {
  name: 'locks',
  title: 'Locks and lock policies after a restore',
  needs: ['terraform', 'kl'],
  after: [],
  async run(stage) {
    const { report } = stage;
    const [a, b] = await stage.backends();
    const work = await stage.workingDirectory('locks', { kld: a.kld, state: NAME });
    await work.write('main.tf', RESOURCE);
    await work.init();
    await work.apply();
    const { bytes, historyDigest } = await a.archives.export(NAME);
    const restored = await b.archives.import(bytes);

    await report.check('a restore keeps the lock policy, and has nothing to warn of', () => {
      deepStrictEqual(restored.messages, []);
      deepStrictEqual(
        restored.operation?.report?.warnings.filter(({ code }) => code.includes('LOCK')),
        [],
      );
    });
    await report.check('a second Terraform is locked out at B as it is at A', async () => {
      const [here, there] = [await lockTwice(a.kld, NAME), await lockTwice(b.kld, NAME)];
      deepStrictEqual(here, [200, 423]);
      deepStrictEqual(there, here);
    });

    await b.kld.lock(NAME, 'held', 'me@there');
    await report.check('the preview tells who holds the lock', async () =>
      strictEqual((await b.archives.preview(NAME))?.status.lockedBy, 'me@there'),
    );
    const overwrite = { onConflict: 'OVERWRITE', confirmName: NAME, expectedCurrentSerial: '1' } as const;
    await report.check('an overwrite of a locked state is refused', async () =>
      deepStrictEqual((await b.archives.import(bytes, overwrite)).codes, ['STATE_LOCKED']),
    );
    await report.check('a lock does not hinder an export', async () =>
      strictEqual((await b.archives.export(NAME)).historyDigest, historyDigest),
    );
    await b.kld.unlock(NAME, 'held');

    const shell = await stage.workingDirectory('shell', { kld: b.kld, state: 'shell' });
    await shell.write('main.tf', RESOURCE);
    await shell.init();
    await shell.terraform(['plan', '-input=false']);
    const intoShell = { name: 'shell', allowSharedLineage: true };
    await report.check('the empty state that a plan leaves behind holds its name', async () =>
      deepStrictEqual((await b.archives.import(bytes, intoShell)).codes, ['STATE_ALREADY_EXISTS']),
    );
    await report.check('it can be overwritten, without a serial', async () => {
      const { messages } = await b.archives.import(bytes, {
        ...intoShell,
        onConflict: 'OVERWRITE',
        confirmName: 'shell',
      });
      deepStrictEqual(messages, []);
    });
    await report.check('and there terraform plan finds nothing to do', async () => {
      const { exitCode, stdout, stderr } = await shell.plan();
      strictEqual(exitCode, 0, stdout + stderr);
    });

    const { stdout: document } = await work.terraform(['state', 'pull']);
    await work.kl(['import', '--name', OPTIMISTIC, '-'], {
      input: document.replace(/"lineage": "[^"]*"/, '"lineage": "c0ffee00-0000-4000-8000-0000000000ee"'),
    });
    const optimistic = await a.archives.export(OPTIMISTIC);
    await report.check('a state that kl made is restored as optimistic as it was', async () => {
      deepStrictEqual((await b.archives.import(optimistic.bytes)).messages, []);
      const [here, there] = [await lockTwice(a.kld, OPTIMISTIC), await lockTwice(b.kld, OPTIMISTIC)];
      deepStrictEqual(here, [200, 200]);
      deepStrictEqual(there, here);
    });
    await report.check('two who write different resources at once are merged at B as at A', async () => {
      const [here, there] = [await writeTwice(a.kld), await writeTwice(b.kld)];
      deepStrictEqual(here, { statuses: [200, 200], resources: ['a', 'one', 'two'] });
      deepStrictEqual(there, here);
    });
  },
};

/** Asks for two locks, as two Terraforms would, and gives them back. */
async function lockTwice(kld: Kld, name: string): Promise<number[]> {
  const statuses = [(await kld.lock(name, 'first')).status, (await kld.lock(name, 'second')).status];
  await kld.unlock(name, 'first');
  await kld.unlock(name, 'second');
  return statuses;
}

/** Two writers lock, each adds a resource to what both have seen, both write. */
async function writeTwice(kld: Kld) {
  const names = ['one', 'two'];
  for (const name of names) await kld.lock(OPTIMISTIC, name);
  const seen = JSON.parse(await kld.document(OPTIMISTIC)) as Document;
  const statuses: number[] = [];
  for (const name of names) {
    const added = {
      mode: 'managed',
      type: 'terraform_data',
      name,
      provider: 'provider["terraform.io/builtin/terraform"]',
      instances: [
        { schema_version: 0, attributes: { id: name, input: null, output: null, triggers_replace: null } },
      ],
    };
    const document = { ...seen, serial: seen.serial + 1, resources: [...seen.resources, added] };
    statuses.push((await kld.post(OPTIMISTIC, document, `?ID=${name}`)).status);
  }
  for (const name of names) await kld.unlock(OPTIMISTIC, name);
  const { resources } = JSON.parse(await kld.document(OPTIMISTIC)) as Document;
  return { statuses, resources: resources.map(({ name }) => name).sort() };
}
