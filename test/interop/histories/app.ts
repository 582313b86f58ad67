import type { WorkingDirectory } from '../working-directory.ts';
import { Steps } from './steps.ts';

/** The history of an application: made by Terraform, written again by `kl import`, and applied by `kl` in every way. */
export async function writeAppHistory(work: WorkingDirectory): Promise<Steps> {
  const steps = new Steps();
  const { state } = work;
  const setC = (input: string) =>
    work.write('c.tf', `resource "terraform_data" "c" { input = "${input}" }\n`);
  const apply = (...args: string[]) => ['apply', '-f', 'c.tf', '--confirm-scope', ...args];

  await work.write('main.tf', chain('1'));
  await work.init();
  await steps.take('create', work.try(['apply', '-input=false', '-auto-approve']));
  const { stdout: input } = await work.terraform(['state', 'pull']);
  await steps.take('kl import', work.tryKl(['import', '--name', state, '-'], { input }));
  await work.write('main.tf', chain('2'));
  // `kl plan` works with HashiCorp's Terraform only.
  const planned = work.tryKl(['plan', '-o', 'spec.json']);
  await steps.take('kl plan', planned, 'any');
  if ((await planned).exitCode === 0) {
    await steps.take('kl apply', work.tryKl(['apply', '--plan-spec', 'spec.json']));
  }
  await setC('c1');
  await steps.take('kl apply of one file', work.tryKl(apply()));
  await setC('c2');
  await steps.take('the same by the state engine', work.tryKl(apply(), { protocol: 'state-engine' }));
  await setC('c3');
  await steps.take('the same, orchestrated', work.tryKl(apply('--orchestrated')));
  await steps.take('kl refresh', work.tryKl(['refresh', state]), 'any');
  await steps.take('apply', work.try(['apply', '-input=false', '-auto-approve']));
  await steps.take('tag', work.tryKl(['tag', 'set', state, 'v1', 'current']));
  await steps.take('plan: nothing to do', work.plan());
  return steps;
}

function chain(input: string): string {
  return `
resource "terraform_data" "a" { input = "${input}" }
resource "terraform_data" "b" { input = terraform_data.a.output }
output "o" { value = terraform_data.b.output }
`;
}
