import { readFile, rm } from 'node:fs/promises';
import { GraphQLError } from 'graphql';
import { inPhase, noteRefusal, noteUpload } from '../../base/telemetry.ts';
import { isConnectionLost } from '../../database/errors.ts';
import { may } from '../../history/states.ts';
import { spoolUpload, UploadTooLargeError } from '../../http/upload.ts';
import { setLegalHold } from '../../operations/archive-retention.ts';
import { cancelOperation, operationNotFound } from '../../operations/cancel-operation.ts';
import { NotPermittedError } from '../../operations/destination-permission.ts';
import { exportStateArchive } from '../../operations/export-state-archive.ts';
import {
  type ImportRequest,
  importStagedArchive,
  importStateArchive,
} from '../../operations/import-state-archive.ts';
import { importStateSnapshot } from '../../operations/import-state-snapshot.ts';
import { type OperationOptions, undecided } from '../../operations/start-operation.ts';
import { stageUpload } from '../../operations/uploads.ts';
import {
  pathTo,
  RequestRefusedError,
  stateNotFound,
  toUserError,
  type UserError,
  type UserErrorCode,
} from '../../operations/user-error.ts';
import type { ConflictPolicy } from '../../restore/placement.ts';
import type { GraphqlContext, Reader } from '../context.ts';
import { forgetReads } from '../loaders.ts';
import { type OperationParent, readOne } from '../parents.ts';
import type {
  CancelStateArchiveOperationInput,
  ImportStateArchiveInput,
  ImportStateSnapshotInput,
  MutationResolvers,
} from '../schema-types.ts';

export const Mutation: MutationResolvers = {
  async exportStateArchive(_root, { input }, context) {
    const reader = await context.reader(input.scope);
    return operationPayload(context, 'exportStateArchive', reader, async () => {
      if (reader === null) throw stateNotFound();
      return exportStateArchive(context.services, { ...context, ...reader }, input.name, {
        ...optionsOf(input),
        retainUntil: input.retainUntil ?? null,
        legalHold: input.legalHold,
        recipients: input.recipients,
        discloseHistoryDigest: input.discloseHistoryDigest,
      });
    });
  },

  async importStateArchive(_root, { input }, context) {
    const reader = await destinationReader(context, input.scope);
    return operationPayload(context, 'importStateArchive', reader, async () => {
      const request: ImportRequest = {
        ...optionsOf(input),
        label: input.name ?? null,
        onConflict: conflictPolicyOf(input),
        allowSharedLineage: input.allowSharedLineage,
        dryRun: input.dryRun,
        expectedSha256: input.expectedSha256 ?? null,
      };
      const { file, uploadId } = input;
      const asked = { ...context, ...reader };
      if (typeof uploadId === 'string' && !file) {
        return importStagedArchive(context.services, asked, uploadId, request);
      }
      if (!file || typeof uploadId === 'string') {
        throw new RequestRefusedError('INVALID_INPUT', 'Give exactly one of `file` and `uploadId`.', [
          file ? 'uploadId' : 'file',
        ]);
      }
      return importStateArchive(context.services, asked, await receive(context, file), request);
    });
  },

  async cancelStateArchiveOperation(_root, { input }, context) {
    return changeOperation(context, 'cancelStateArchiveOperation', input, ({ caller }, id) =>
      cancelOperation(caller, id),
    );
  },

  async setStateArchiveLegalHold(_root, { input }, context) {
    return changeOperation(context, 'setStateArchiveLegalHold', input, (reader, id) =>
      setLegalHold(context.services, { ...context, ...reader }, id, input.legalHold),
    );
  },

  async stageStateArchiveUpload(_root, { input }, context) {
    const reader = await destinationReader(context, input.scope);
    const { byteLength, sha256, fileName = null } = input;
    const { value, userErrors } = await refusable(context, 'stageStateArchiveUpload', () =>
      stageUpload(
        context.services,
        { ...context, ...reader },
        { byteLength, sha256, fileName },
        context.publicUrl,
      ),
    );
    return { upload: value && { ...value, ...WHOLE_IN_ONE_REQUEST }, userErrors };
  },

  async importStateSnapshot(_root, { input }, context) {
    const reader = await destinationReader(context, input.scope);
    const { value: written, userErrors } = await refusable(context, 'importStateSnapshot', async () =>
      importStateSnapshot(
        context.services,
        { ...context, ...reader },
        {
          label: input.name,
          document: await documentOf(context, input),
          source: input.source ?? null,
          idempotencyKey: input.idempotencyKey ?? null,
        },
      ),
    );
    if (written === null) return { stateArchive: null, version: null, userErrors };
    const { loaders } = reader;
    forgetReads(loaders);
    const state = await loaders.stateById.load(written.stateId);
    // A version tells of the one before it: it is for whoever may see the state.
    const version = state && (await loaders.versionBySerial.load(written));
    const isGone = version === null && may(reader.caller, 'state.read');
    return {
      stateArchive: state && { ...state, reader },
      version: version && { ...version, reader },
      userErrors: isGone ? [GONE_SINCE] : [],
    };
  },
};

/** How tus 1.0 has a file sent that begins at its first byte. */
const WHOLE_IN_ONE_REQUEST = {
  method: 'PATCH',
  headers: [
    { name: 'Tus-Resumable', value: '1.0.0' },
    { name: 'Upload-Offset', value: '0' },
    { name: 'Content-Type', value: 'application/offset+octet-stream' },
  ],
};

/** What a key stands for may have been put away by the time it is shown again. */
const GONE_SINCE: UserError = {
  code: 'STATE_NOT_FOUND',
  message: 'The version was written; since then its state was archived, suspended, renamed or destroyed.',
  path: pathTo('name'),
};

/** The payload of a mutation that changes an operation: the operation as it stands now, and why it was not changed. */
async function changeOperation(
  context: GraphqlContext,
  mutation: string,
  { id: given, scope }: Pick<CancelStateArchiveOperationInput, 'id' | 'scope'>,
  change: (reader: Reader, id: string) => Promise<unknown>,
) {
  // A uuid is the same in either case (RFC 9562, section 4).
  const id = given.toLowerCase();
  const reader = await context.reader(scope);
  const { userErrors } = await refusable(context, mutation, async () => {
    if (reader === null) throw operationNotFound();
    await change(reader, id);
  });
  if (reader !== null) forgetReads(reader.loaders);
  return {
    operation: await readOne(reader, ({ operationById }) => operationById.load(id)),
    userErrors,
  };
}

/** The payload of a mutation that starts an operation: the operation as it stands now, and why it was refused or failed. */
async function operationPayload(
  context: GraphqlContext,
  mutation: string,
  reader: Reader | null,
  start: () => Promise<string>,
): Promise<{ operation: OperationParent | null; userErrors: readonly UserError[] }> {
  const { value: id, userErrors } = await refusable(context, mutation, start);
  if (id === null) return { operation: null, userErrors };
  if (reader === null) throw new Error('An operation was started in no environment.');
  forgetReads(reader.loaders);
  try {
    const operation = await readOne(reader, ({ operationById }) => operationById.load(id));
    return { operation, userErrors: operation?.error ? [operation.error] : [] };
  } catch (error) {
    // That the database cannot be asked for it now is no reason not to tell its id.
    if (!isConnectionLost(error)) throw error;
    return { operation: null, userErrors: [undecided(id)] };
  }
}

/**
 * Turns what the caller can mend into data, and a denial into the error that denials are. Either is noted in the log: what is
 * refused before there is an operation leaves no row.
 */
async function refusable<Value>(
  context: GraphqlContext,
  mutation: string,
  work: () => Promise<Value>,
): Promise<{ readonly value: Value | null; readonly userErrors: readonly UserError[] }> {
  const note = (code: UserErrorCode | 'FORBIDDEN') => {
    context.logger.info({ subject: context.principal?.subject, mutation, code }, 'refused');
    noteRefusal('mutation', code);
  };
  try {
    return { value: await work(), userErrors: [] };
  } catch (error) {
    if (error instanceof NotPermittedError) {
      note('FORBIDDEN');
      throw forbidden(error.message);
    }
    const refusal: UserError | null =
      error instanceof UploadTooLargeError
        ? { code: 'ARCHIVE_TOO_LARGE', message: error.message, path: pathTo('file') }
        : toUserError(error);
    if (refusal === null) throw error;
    note(refusal.code);
    return { value: null, userErrors: [refusal] };
  }
}

async function destinationReader(
  context: GraphqlContext,
  scope: ImportStateSnapshotInput['scope'],
): Promise<Reader> {
  const reader = await context.reader(scope);
  if (reader === null) throw forbidden('Your credential does not cover this workspace and environment.');
  return reader;
}

function forbidden(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'FORBIDDEN' } });
}

/** @throws RequestRefusedError INVALID_INPUT when the confirmation of an overwrite is missing, or given without one. */
function conflictPolicyOf(input: ImportStateArchiveInput): ConflictPolicy {
  const { confirmName, expectedCurrentSerial = null } = input;
  const kind = input.onConflict;
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
  readonly waitSeconds: number;
  readonly idempotencyKey?: string | null | undefined;
}): OperationOptions {
  return { waitSeconds: input.waitSeconds, idempotencyKey: input.idempotencyKey ?? null };
}

async function receive(
  { services, maxInlineUploadBytes, signal, principal }: GraphqlContext,
  upload: Parameters<typeof spoolUpload>[0],
) {
  const path = services.scratch.path();
  const subject = principal?.subject ?? '';
  const file = await inPhase('receive', () =>
    services.uploads.receive(subject, () =>
      spoolUpload(upload, path, { maxBytes: maxInlineUploadBytes, signal }),
    ),
  );
  noteUpload('inline', Number(file.sizeBytes));
  return { path, ...file };
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
