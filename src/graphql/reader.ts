import { GraphQLError } from 'graphql';
import type { Logger } from 'pino';
import { type Environment, mayIn, ownEnvironment, type Principal } from '../auth/principal.ts';
import { isStorableText, isVisibleText } from '../base/text.ts';
import { DigestBudget } from '../history/digest-budget.ts';
import { type Caller, may } from '../history/states.ts';
import type { ContextRequest } from '../http/graphql-route.ts';
import type { OpenEnvironment } from '../operations/environments.ts';
import type { ArchiveServices } from '../operations/services.ts';
import { insertStateEvent } from '../operations/state-events.ts';
import { badUserInput } from './connection.ts';
import { createLoaders, type Loaders } from './loaders.ts';
import { RawStateBudget } from './raw-state-budget.ts';
import type { StateScopeInput } from './schema-types.ts';

/** The caller in one environment, and what one request reads there. */
export interface Reader {
  readonly caller: Caller;
  readonly loaders: Loaders;
}

/** What is the same for every request. */
export interface ServiceFacts {
  readonly services: ArchiveServices;
  /** The largest file accepted inside a request, in bytes. */
  readonly maxInlineUploadBytes: number;
  readonly logger: Logger;
}

/** Who asks, and of what. */
export type RequestFacts = ServiceFacts & ContextRequest;

const MAX_REASON_LENGTH = 500;

/**
 * Makes the function that opens environments for one request: the one a scope names, or the caller's own. Each is opened
 * once. Null stands for an environment that is not there, not active, or nothing to the caller: they are not told apart.
 *
 * Support acts in an environment that is not its own with a reason alone, which is put on record before anything is read.
 *
 * @throws GraphQLError BAD_USER_INPUT, from the function, when support gives no reason.
 */
export function createReaders(
  request: RequestFacts,
): (scope: StateScopeInput | null | undefined) => Promise<Reader | null> {
  const opened = new Map<string, Promise<Reader | null>>();
  const budgets = { digests: new DigestBudget(request.signal), rawStates: new RawStateBudget() };
  return (scope) => {
    const key = scope ? JSON.stringify([scope.workspaceId, scope.environmentId, scope.reason]) : '';
    const reader = opened.get(key) ?? openReader(request, scope ?? null, budgets);
    opened.set(key, reader);
    return reader;
  };
}

async function openReader(
  request: RequestFacts,
  scope: StateScopeInput | null,
  { digests, rawStates }: { digests: DigestBudget; rawStates: RawStateBudget },
): Promise<Reader | null> {
  const { principal, services } = request;
  if (principal === null) return null;
  const own = ownEnvironment(principal);
  const target = scope ? { workspace: scope.workspaceId, environment: scope.environmentId } : own;
  if (!isStorableText(target.workspace) || !isStorableText(target.environment)) return null;
  // Before the environment is looked for: that its database is away would tell a stranger that it is there.
  if (!mayDoAnything(principal, target)) return null;
  const isOwn = target.workspace === own.workspace && target.environment === own.environment;
  const isSelfHosted = isOwn && principal.workspace === null;
  const environment = await services.environments.open(isSelfHosted ? null : target);
  if (environment === null) return null;
  const supportReason = reasonOf(principal, environment, scope, isOwn);
  const caller: Caller = { principal, ...environment, supportReason };
  if (supportReason !== null) await recordSupportAccess(request, caller, supportReason);
  return { caller, loaders: createLoaders(caller, digests, rawStates) };
}

function mayDoAnything(principal: Principal, environment: Environment): boolean {
  return (['state.read', 'state.export', 'state.import', 'state.support'] as const).some((scope) =>
    mayIn(principal, scope, environment),
  );
}

function reasonOf(
  principal: Principal,
  { namespace }: OpenEnvironment,
  scope: StateScopeInput | null,
  isOwn: boolean,
): string | null {
  if (!mayIn(principal, 'state.support', namespace)) return null;
  const reason = scope?.reason?.trim() ?? '';
  if (reason === '' && isOwn) return null;
  if (reason === '' || reason.length > MAX_REASON_LENGTH || !isVisibleText(reason)) {
    throw badUserInput(
      `Support gives scope.reason, 1 to ${MAX_REASON_LENGTH} characters on one line, all of them seen, for an environment that is not its own.`,
    );
  }
  return reason;
}

async function recordSupportAccess(
  { requestId, logger }: RequestFacts,
  { principal, namespace, database }: Caller,
  reason: string,
): Promise<void> {
  const { tenantId, workspace, environment } = namespace;
  logger.info({ requestId, subject: principal.subject, workspace, environment }, 'support access');
  await insertStateEvent(database.for('record'), {
    tenantId,
    kind: 'state_support_access',
    stateId: null,
    versionId: null,
    actor: principal.actor,
    payload: { workspace, environment, reason, principal: principal.subject, request_id: requestId },
  });
}

/** @throws GraphQLError FORBIDDEN when the directives let pass what the caller may not do in this very environment. */
export function requirePermission({ caller }: Reader, scope: Parameters<typeof may>[1]): void {
  if (may(caller, scope)) return;
  throw new GraphQLError('Not permitted in this environment.', {
    extensions: { code: 'FORBIDDEN', requiredScopes: [[scope]] },
  });
}
