import type { CommonOptions, Context } from '../context.ts';
import { findCredential } from '../credentials.ts';
import { type CallerAnswer, DOCUMENTS } from '../documents.ts';
import { EXIT, type Exit } from '../endings.ts';
import { Service, unexplained } from '../service.ts';
import { pairs } from '../tables.ts';

/** `kl whoami`: who the service takes the token for, and what it permits. */
export async function run({ terminal, signal }: Context, _options: CommonOptions): Promise<Exit> {
  const { endpoint, token } = await findCredential();
  const caller = await callerOf(new Service(endpoint, token, signal));
  terminal.result({ endpoint, ...caller }, () =>
    pairs({
      Endpoint: endpoint,
      Subject: caller.subject,
      Name: caller.actor,
      Scopes: caller.scopes.join(' '),
      Workspace: caller.workspaceId ?? 'none: say --workspace',
      Environment: caller.environmentId ?? 'none: say --environment',
      States: caller.statePatterns?.join(' ') ?? 'all',
      Expires: caller.expiresAt ?? 'when it is revoked',
    }),
  );
  return EXIT.done;
}

/** @throws KlError when the service does not accept the credential. */
export async function callerOf(service: Service): Promise<CallerAnswer> {
  return (await service.ask(DOCUMENTS.caller, {})) ?? unexplained('does not say who the credential is');
}
