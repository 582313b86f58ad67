import type { CommonOptions, Context } from '../context.ts';
import { findCredential } from '../credentials.ts';
import { DOCUMENTS } from '../documents.ts';
import { EXIT, type Exit, failure } from '../endings.ts';
import { Service } from '../service.ts';
import { pairs } from '../tables.ts';

/** `kl whoami`: who the service takes the token for, and what it permits. */
export async function run({ terminal, signal }: Context, _options: CommonOptions): Promise<Exit> {
  const { endpoint, token } = await findCredential();
  const caller = await callerOf(new Service(endpoint, token, signal));
  terminal.result({ endpoint, ...caller }, () =>
    pairs([
      ['Endpoint', endpoint],
      ['Subject', caller.subject],
      ['Name', caller.actor],
      ['Scopes', caller.scopes.join(' ')],
      ['Workspace', caller.workspaceId ?? 'none: say --workspace'],
      ['Environment', caller.environmentId ?? 'none: say --environment'],
      ['States', caller.statePatterns?.join(' ') ?? 'all'],
      ['Expires', caller.expiresAt ?? 'when it is revoked'],
    ]),
  );
  return EXIT.done;
}

interface Caller {
  readonly subject: string;
  readonly actor: string;
  readonly scopes: readonly string[];
  readonly workspaceId: string | null;
  readonly environmentId: string | null;
  readonly statePatterns: readonly string[] | null;
  readonly expiresAt: string | null;
}

/** @throws KlError when the service does not accept the credential. */
export async function callerOf(service: Service): Promise<Caller> {
  const { stateArchiveCaller } = await service.ask<{ stateArchiveCaller: Caller | null }>(
    DOCUMENTS.caller,
    {},
  );
  if (stateArchiveCaller !== null) return stateArchiveCaller;
  throw failure('UNKNOWN_ANSWER', 'The service does not say who the credential is.');
}
