import { GraphQLError } from 'graphql';
import {
  type Environment,
  mayAddressState,
  mayIn,
  ownEnvironment,
  type Principal,
  type Scope,
} from '../auth/principal.ts';
import { isStorableText, isVisibleText } from '../base/text.ts';
import { DigestBudget } from '../history/digest-budget.ts';
import { type Caller, may } from '../history/states.ts';
import type { ContextRequest } from '../http/graphql-route.ts';
import type { OpenEnvironment } from '../operations/environments.ts';
import type { ArchiveServices } from '../operations/services.ts';
import { insertStateEvent } from '../operations/state-events.ts';
import { badUserInput } from './connection.ts';
import { createLoaders, keepState, type Loaders } from './loaders.ts';
import { RawStateBudget } from './raw-state-budget.ts';
import type { StateScopeInput } from './schema-types.ts';

/** The caller in one environment, and what one request reads there. */
export interface Reader {
  readonly caller: Caller;
  readonly loaders: Loaders;
}

/** What is the same for every request. */
interface ServiceFacts {
  readonly services: ArchiveServices;
  /** The largest file accepted inside a request, in bytes. */
  readonly maxInlineUploadBytes: number;
}

/** The state that an environment is opened for, and whether its preview is asked for, too. */
interface WantedState {
  readonly label: string;
  readonly withPreview: boolean;
}

/** What every resolver of a request is given: who asks, and of what. */
export interface GraphqlContext extends ServiceFacts, ContextRequest {
  /**
   * Opens the environment that a scope names, or the caller's own, once in a request; nothing is read from the database before.
   * Null stands for an environment that is not there, not active, or nothing to the caller: they are not told apart. What is
   * wanted there may be read with it, and is in the loaders then.
   *
   * Support acts in an environment that is not its own with a reason alone, which is put on record before anything is read.
   *
   * @throws GraphQLError BAD_USER_INPUT when support gives no reason.
   */
  reader(scope: StateScopeInput | null | undefined, wanted?: WantedState): Promise<Reader | null>;
}

const MAX_REASON_LENGTH = 500;

/** Makes the context of one request. */
export function createContext(service: ServiceFacts, request: ContextRequest): GraphqlContext {
  const facts = { ...service, ...request };
  const opened = new Map<string, Promise<Reader | null>>();
  const budgets = { digests: new DigestBudget(request.signal), rawStates: new RawStateBudget() };
  return {
    ...facts,
    reader(scope, wanted) {
      const key = scope ? JSON.stringify([scope.workspaceId, scope.environmentId, scope.reason]) : '';
      const reader = opened.get(key) ?? openReader(facts, scope ?? null, wanted ?? null, budgets);
      opened.set(key, reader);
      return reader;
    },
  };
}

async function openReader(
  request: ServiceFacts & ContextRequest,
  scope: StateScopeInput | null,
  wanted: WantedState | null,
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
  const selector = isSelfHosted ? null : target;
  const found =
    wanted !== null && mayBeReadAtOnce(principal, target, wanted)
      ? await services.environments.openWithState(selector, wanted.label, {
          withHistory: wanted.withPreview,
        })
      : null;
  const environment = found ?? (await services.environments.open(selector));
  if (environment === null) return null;
  const { namespace, database } = environment;
  const supportReason = reasonOf(principal, environment, scope, isOwn);
  const caller: Caller = { principal, namespace, database, supportReason };
  if (supportReason !== null) await recordSupportAccess(request, caller, supportReason);
  const loaders = createLoaders(caller, digests, rawStates);
  if (found !== null) keepState(loaders, found);
  return { caller, loaders };
}

/** Whether the caller sees the state if it is active. Of support's reason there must be a record before anything is read. */
function mayBeReadAtOnce(principal: Principal, environment: Environment, { label }: WantedState): boolean {
  return (
    mayIn(principal, 'state.read', environment) &&
    !mayIn(principal, 'state.support', environment) &&
    isStorableText(label) &&
    mayAddressState(principal, label)
  );
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
  { requestId, logger }: ServiceFacts & ContextRequest,
  { principal, namespace, database }: Caller,
  reason: string,
): Promise<void> {
  const { tenantId, workspace, environment } = namespace;
  logger.info({ subject: principal.subject, workspace, environment }, 'support access');
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
export function requirePermission({ caller }: Reader, scope: Scope): void {
  if (may(caller, scope)) return;
  throw new GraphQLError('Not permitted in this environment.', {
    extensions: { code: 'FORBIDDEN', requiredScopes: [[scope]] },
  });
}
