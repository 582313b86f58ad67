import type { CommonOptions, Context } from '../context.ts';
import { type CallerAnswer, DOCUMENTS } from '../documents.ts';
import { EXIT, type Exit } from '../endings.ts';
import { connect, type Service, unexplained } from '../service.ts';
import { pairs } from '../tables.ts';

/** `kl whoami`: who the service takes the token for, and what it permits. */
export async function run(context: Context, _options: CommonOptions): Promise<Exit> {
  const service = await connect(context);
  const { endpoint } = service;
  const caller = await callerOf(service);
  context.terminal.result({ endpoint, ...caller }, () =>
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
