import { readFile } from 'node:fs/promises';
import type { Finished } from '../processes.ts';
import type { WorkingDirectory } from '../working-directory.ts';
import { Steps } from './steps.ts';

/** Keys that are quoted, escaped, interpolated, numbers, paths, or beyond ASCII. */
const KEYS = {
  plain: 1,
  'with "quotes"': 2,
  ['$' + '{x} %{y}']: 3,
  'ünï/☃': 4,
  '12': 5,
  'back\\slash': 6,
  '<tag>&amp;': 7,
  'a b\tc': 8,
};

/** Some of them gone, some changed, one new with characters that Go escapes. */
const OTHER_KEYS = {
  plain: 1,
  'with "quotes"': 22,
  ['$' + '{x} %{y}']: 3,
  'ünï/☃': 44,
  '12': 5,
  'new\u2028key\u00a0': 9,
};

/** A state document, as far as the steps change it. */
interface Document {
  serial: number;
  version: number;
  outputs: Record<string, unknown>;
  resources: { name: string; instances: Record<string, unknown>[] }[];
}

/** What the network's configuration is given. */
export interface NetworkVariables {
  readonly keys: Readonly<Record<string, number>>;
  readonly tag: string;
  readonly inner: number;
  readonly many: number;
}

const AT_FIRST: NetworkVariables = { keys: KEYS, tag: 'one', inner: 2, many: 3 };

/** Puts the configuration of the network into a working directory. */
export async function configureNetwork(work: WorkingDirectory): Promise<void> {
  await work.write('main.tf', await configuration('network.tf'));
  await work.write('module/main.tf', await configuration('module.tf'));
  await setNetwork(work, {});
}

/** Changes the configuration; what is not named is as at first. */
export async function setNetwork(
  work: WorkingDirectory,
  variables: Partial<NetworkVariables>,
): Promise<void> {
  await work.write('network.auto.tfvars.json', JSON.stringify({ ...AT_FIRST, ...variables }));
}

/** The network with other keys, for every later change. */
export const LATER = { keys: OTHER_KEYS, tag: 'two', many: 4 };

/** A file of `test/interop/terraform`. */
export async function configuration(file: string): Promise<string> {
  return readFile(new URL(`../terraform/${file}`, import.meta.url), 'utf8');
}

/**
 * The history of a network: more than twenty versions, by every way Kilolock has to write one. Applies, `state mv`,
 * `state rm`, taint, import, push, replacement, a deposed object, a failed create, rollbacks of the state and of one
 * resource, and the native `kl state`; tags that are set, moved and unset; and writes that are refused.
 *
 * @returns the steps, and the status of each write that has to be refused.
 */
export async function writeNetworkHistory(
  work: WorkingDirectory,
): Promise<{ readonly steps: Steps; readonly refusals: readonly number[] }> {
  const steps = new Steps();
  const { state } = work;
  const apply = () => work.try(['apply', '-input=false', '-auto-approve']);
  const tag = (...args: string[]) => work.tryKl(['tag', 'set', ...args]);

  await configureNetwork(work);
  await work.init();
  await steps.take('create', apply());
  await setNetwork(work, { tag: 'two' });
  await steps.take('change', apply());
  await setNetwork(work, LATER);
  await steps.take('change keys and counts', apply());
  await steps.take(
    'state mv',
    work.try(['state', 'mv', 'terraform_data.many[3]', 'terraform_data.moved["$${x}"]']),
  );
  await steps.take('state rm', work.try(['state', 'rm', 'module.m.terraform_data.inner[1]']));
  await steps.take('tag first', tag('--description', 'the first ünï "x"', state, 'first', '1'));
  await steps.take('tag release', tag(state, 'release-1', 'current'));
  await steps.take(
    'tag that will move',
    tag('--description', 'goes', '--actor', 'Ann <ann@example.com>', state, 'moving', '@2'),
  );
  await steps.take('taint', work.try(['taint', 'terraform_data.plain']));
  await steps.take('apply what is tainted', apply());

  await work.write('extra.tf', 'resource "terraform_data" "imported" { input = "imp" }\n');
  await steps.take('import', work.try(['import', '-input=false', 'terraform_data.imported', 'an-id']), 'any');
  await steps.take('apply after the import', apply());

  await work.write('replaced.tf', createdBeforeDestroyed(1));
  await steps.take('create what is replaced later', apply());
  await work.write('replaced.tf', createdBeforeDestroyed(2));
  await steps.take('replace', apply());

  await steps.take('push a deposed object', push(work, addDeposed));
  await steps.take('tag the deposed', tag(state, 'deposed', 'current'));
  await steps.take('apply the deposed away', apply());

  await work.write('provisioned.tf', provisioned('false'));
  await steps.take('fail to create', apply(), 1);
  await work.write('provisioned.tf', provisioned('true'));
  await work.write('replaced.tf', createdBeforeDestroyed(3, 2));
  await setNetwork(work, { ...LATER, tag: 'three', many: 2, inner: 3 });
  await steps.take('mend', apply());

  await steps.take(
    'push with a gap in the serials and another output',
    push(work, (document) => {
      document.serial += 4;
      document.outputs.pushed = { value: { n: 1 }, type: ['object', { n: 'number' }], sensitive: true };
    }),
  );
  await steps.take(
    'push the same in another spelling',
    push(work, () => {}, { force: true, indent: 7 }),
  );
  const refusals = await writeWhatIsRefused(work, steps);
  await steps.take('apply after the push', apply());

  await steps.take('preview a rollback', work.tryKl(['rollback', '--to', 'release-1', state]));
  await steps.take(
    'roll back to a tag',
    work.tryKl(['rollback', '--to', 'release-1', '--apply', '--yes', '--actor', 'roll@back', state]),
  );
  await steps.take('apply after the rollback', apply());
  await steps.take(
    'roll one resource back',
    work.tryKl([
      'rollback',
      'resource',
      '--address',
      'terraform_data.plain',
      '--to',
      'first',
      '--apply',
      '--yes',
      state,
    ]),
  );
  await steps.take('apply after that', apply());

  const stateEngine = (...args: string[]) =>
    work.tryKl(['state', ...args, '--apply', '--yes', state], { protocol: 'state-engine' });
  await steps.take(
    'kl state mv',
    stateEngine('mv', '--from', 'terraform_data.many[1]', '--to', 'terraform_data.many["kl"]'),
  );
  await steps.take('kl state rm', stateEngine('rm', '--address', 'module.m.terraform_data.inner[0]'));
  await steps.take('apply after kl', apply());

  await steps.take('move a tag', tag(state, 'moving', 'current'));
  await steps.take('set a tag', tag(state, 'gone', 'current'));
  await steps.take('unset it', work.tryKl(['tag', 'unset', state, 'gone']));
  await steps.take('an odd tag', tag(state, 'Ünï ☃ "t"', '3'));
  await steps.take('plan: nothing to do', work.plan());
  return { steps, refusals };
}

function createdBeforeDestroyed(input: number, trigger = input): string {
  return `
resource "terraform_data" "cbd" {
  input            = "v${input}"
  triggers_replace = [${trigger}]
  lifecycle { create_before_destroy = true }
}
resource "terraform_data" "user" { input = terraform_data.cbd.id }
`;
}

function provisioned(command: string): string {
  return `
resource "terraform_data" "bad" {
  provisioner "local-exec" { command = "${command}" }
}
`;
}

/** Changes the document as `terraform state pull` and `push` let one do. */
async function push(
  work: WorkingDirectory,
  change: (document: Document) => void,
  { force = false, indent = 0 } = {},
): Promise<Finished> {
  const document = await pull(work);
  document.serial += 1;
  change(document);
  return work.try(['state', 'push', ...(force ? ['-force'] : []), '-'], {
    input: JSON.stringify(document, null, indent),
  });
}

async function pull(work: WorkingDirectory): Promise<Document> {
  return JSON.parse((await work.terraform(['state', 'pull'])).stdout) as Document;
}

function addDeposed({ resources }: Document): void {
  const instances = resources.find(({ name }) => name === 'cbd')?.instances;
  const [current] = instances ?? [];
  if (instances === undefined || current === undefined) throw new Error('There is nothing to depose.');
  const attributes = { ...(current.attributes as object), id: 'old-id' };
  instances.push({ ...current, attributes, deposed: 'abcd1234' });
}

/** A document cut short, one of another format version, and one past a lock. */
async function writeWhatIsRefused(work: WorkingDirectory, steps: Steps): Promise<number[]> {
  const { kld, state } = work;
  const document = await pull(work);
  const cutShort = await kld.post(state, '{"version": 4, "serial": "x"');
  const oldFormat = await kld.post(state, { ...document, version: 3 });
  await kld.lock(state, 'other', 'someone@else');
  const pastTheLock = await kld.post(state, document, '?ID=not-the-lock');
  await steps.take(
    'apply against a lock',
    work.try(['apply', '-input=false', '-auto-approve', '-lock-timeout=0s']),
    1,
  );
  await kld.unlock(state, 'other');
  return [cutShort.status, oldFormat.status, pastTheLock.status];
}
