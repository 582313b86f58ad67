import { readFile, rm } from 'node:fs/promises';
import { GraphQLError } from 'graphql';
import type { Caller } from '../../history/states.ts';
import { spoolUpload } from '../../http/upload.ts';
import { exportStateArchive } from '../../operations/export-state-archive.ts';
import { importStateArchive, NotPermittedError } from '../../operations/import-state-archive.ts';
import { importStateSnapshot } from '../../operations/import-state-snapshot.ts';
import type { OperationRecord } from '../../operations/operation-records.ts';
import type { OperationOptions } from '../../operations/start-operation.ts';
import {
  RequestRefusedError,
  stateNotFound,
  toUserError,
  type UserError,
} from '../../operations/user-error.ts';
import type { ConflictPolicy } from '../../restore/placement.ts';
import { callerIn, type GraphqlContext } from '../context.ts';
import { canBeInLabel } from '../label.ts';
import { forgetReads } from '../loaders.ts';
import type {
  ImportStateArchiveInput,
  ImportStateSnapshotInput,
  MutationResolvers,
} from '../schema-types.ts';

export const Mutation: MutationResolvers = {
  async exportStateArchive(_root, { input }, context) {
    return operationPayload(context, async () => {
      const caller = await callerIn(context, input.scope);
      if (caller === null || !canBeInLabel(input.name)) throw stateNotFound();
      return exportStateArchive(context.services, { ...context, caller }, input.name, optionsOf(input));
    });
  },

  async importStateArchive(_root, { input }, context) {
    return operationPayload(context, async () => {
      const caller = await destinationCaller(context, input.scope);
      const file = await receive(context, input.file);
      return importStateArchive(context.services, { ...context, caller }, file, {
        ...optionsOf(input),
        label: input.name ?? null,
        onConflict: conflictPolicyOf(input),
        allowSharedLineage: input.allowSharedLineage ?? false,
        dryRun: input.dryRun ?? false,
        expectedSha256: input.expectedSha256 ?? null,
      });
    });
  },

  async importStateSnapshot(_root, { input }, context) {
    const outcome = await refusable(async () => {
      const caller = await destinationCaller(context, input.scope);
      const document = await documentOf(context, input);
      return importStateSnapshot(
        context.services,
        { ...context, caller },
        input.name,
        document,
        input.source ?? null,
      );
    });
    if ('refusal' in outcome) return { stateArchive: null, version: null, userErrors: [outcome.refusal] };
    const { loaders } = context;
    forgetReads(loaders);
    return {
      stateArchive: await loaders.stateById.load(outcome.value.stateId),
      version: await loaders.versionBySerial.load(outcome.value),
      userErrors: [],
    };
  },
};

/** The payload of a mutation that starts an operation: the operation as it stands now, and why it was refused or failed. */
async function operationPayload(
  { loaders }: GraphqlContext,
  start: () => Promise<string>,
): Promise<{ operation: OperationRecord | null; userErrors: UserError[] }> {
  const outcome = await refusable(start);
  if ('refusal' in outcome) return { operation: null, userErrors: [outcome.refusal] };
  forgetReads(loaders);
  const operation = await loaders.operationById.load(outcome.value);
  return { operation, userErrors: operation?.error ? [operation.error] : [] };
}

/** Turns what the caller can mend into data, and a denial into the error that denials are. */
async function refusable<Value>(
  work: () => Promise<Value>,
): Promise<{ readonly value: Value } | { readonly refusal: UserError }> {
  try {
    return { value: await work() };
  } catch (error) {
    if (error instanceof NotPermittedError) throw forbidden(error.message);
    const refusal = toUserError(error);
    if (refusal === null) throw error;
    return { refusal };
  }
}

async function destinationCaller(
  context: GraphqlContext,
  scope: ImportStateSnapshotInput['scope'],
): Promise<Caller> {
  const caller = await callerIn(context, scope);
  if (caller === null) throw forbidden('Your credential does not cover this workspace and environment.');
  return caller;
}

function forbidden(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'FORBIDDEN' } });
}

/** @throws RequestRefusedError INVALID_INPUT when the confirmation of an overwrite is missing, or given without one. */
function conflictPolicyOf(input: ImportStateArchiveInput): ConflictPolicy {
  const { confirmName, expectedCurrentSerial = null } = input;
  const kind = input.onConflict ?? 'REFUSE';
  if (kind === 'OVERWRITE') {
    if (typeof confirmName === 'string') return { kind, confirmName, expectedCurrentSerial };
    throw new RequestRefusedError(
      'INVALID_INPUT',
      'OVERWRITE needs confirmName, the name of the state to overwrite.',
      ['confirmName'],
    );
  }
  if (typeof confirmName === 'string' || expectedCurrentSerial !== null) {
    throw new RequestRefusedError(
      'INVALID_INPUT',
      'confirmName and expectedCurrentSerial go with OVERWRITE.',
      ['onConflict'],
    );
  }
  return { kind };
}

function optionsOf(input: {
  readonly waitSeconds?: number | null | undefined;
  readonly idempotencyKey?: string | null | undefined;
}): OperationOptions {
  return { waitSeconds: input.waitSeconds ?? 0, idempotencyKey: input.idempotencyKey ?? null };
}

async function receive(
  { services, maxInlineUploadBytes, signal }: GraphqlContext,
  upload: Parameters<typeof spoolUpload>[0],
) {
  const path = services.store.stagingPath();
  return { path, ...(await spoolUpload(upload, path, { maxBytes: maxInlineUploadBytes, signal })) };
}

async function documentOf(context: GraphqlContext, input: ImportStateSnapshotInput): Promise<Buffer> {
  const { file, document } = input;
  if (typeof document === 'string' && !file) return Buffer.from(document);
  if (!file || typeof document === 'string') {
    throw new RequestRefusedError('INVALID_INPUT', 'Give exactly one of `file` and `document`.', [
      'document',
    ]);
  }
  const { path } = await receive(context, file);
  try {
    return await readFile(path);
  } finally {
    await rm(path, { force: true });
  }
}
