import { randomUUID } from 'node:crypto';
import { present } from '../base/invariant.ts';
import { type DatabaseSession, inTransaction, type KilolockDatabase } from '../database/connection.ts';
import { copyIntoTable, type StreamedValue } from '../database/copy.ts';
import { copiedRow, isUnstorableValue, refusalText, type UnstorableValueError } from '../database/errors.ts';
import type { StateDocument, StateOutput } from '../terraform/document.ts';
import { outputPath, resourcePath } from '../terraform/json-path.ts';
import type { ProjectedResource, Projection } from '../terraform/projection.ts';
import type { RestoreRefusedError } from './errors.ts';
import { insertOutputRows } from './outputs.ts';
import { insertResourceRows } from './resource-rows.ts';
import { unsupportedDocument } from './supported-document.ts';

/** Deeper than any state of Terraform's, and far above what PostgreSQL's stack ends at. */
const DOUBTLESS_DEPTH = 1000;
/** An array or object of jsonb ends at more members than this, depending on how PostgreSQL grows its memory. */
const DOUBTLESS_TOKENS = 8_000_000;
/** Where a container of jsonb ends, in bytes of its binary form. */
const JSONB_BYTES = 268_435_455;
/** What jsonb's binary form of a key or value can need beyond its text: an entry, a header, padding. */
const JSONB_BYTES_A_TOKEN = 17;
/** A row of a btree ends at 2,704 bytes, of which the other columns of Kilolock's indexes need at most 60. */
const DOUBTLESS_KEY_BYTES = 2600;

const EMPTY_DOCUMENT = Buffer.from('{}');

/** Ends the transaction of a trial: nothing of it stays. */
class TrialOver extends Error {}

/**
 * Asks PostgreSQL itself whether it can hold what comes near to its limits, in a transaction that is rolled back. Where
 * these lie exactly cannot be told from outside: keys of an index are compressed before they are measured, the depth of a
 * document depends on the server's stack, and the size of one on how its memory grows.
 *
 * Documents that stand well below every limit, which is nearly all, cost no statement.
 */
export class StorageTrial {
  readonly #database: KilolockDatabase;
  readonly #tenantId: string;

  /** @param tenantId whose rows they would be. */
  constructor(database: KilolockDatabase, tenantId: string) {
    this.#database = database;
    this.#tenantId = tenantId;
  }

  /**
   * The refusal of a document that PostgreSQL cannot hold, or whose rows it cannot; null when it can.
   *
   * @param what names the document at the beginning of a sentence.
   */
  async refusalOf(
    what: string,
    document: StateDocument,
    projection: Projection,
  ): Promise<RestoreRefusedError | null> {
    const doubtful: DoubtfulRows = {
      document: isDoubtful(document) ? document.bytes : null,
      resources: [],
      outputs: [],
    };
    // An address holds the type, too.
    for (const [address] of projection) {
      if (isLongKey(address))
        doubtful.resources.push(present(projection.row(address), 'it has this address'));
    }
    for (const output of document.outputs()) if (isLongKey(output.name)) doubtful.outputs.push(output);
    if (doubtful.document === null && doubtful.resources.length + doubtful.outputs.length === 0) return null;
    try {
      await inTransaction(this.#database, 'restore', (session) => this.#insert(session, doubtful));
    } catch (error) {
      if (error instanceof TrialOver) return null;
      if (isUnstorableValue(error)) return refusalFor(what, error, doubtful);
      throw error;
    }
    return null;
  }

  async #insert(session: DatabaseSession, { document, resources, outputs }: DoubtfulRows): Promise<never> {
    const { db } = session;
    const tenant_id = this.#tenantId;
    const stateId = randomUUID();
    const versionId = randomUUID();
    await db
      .insertInto('states')
      .values({ id: stateId, tenant_id, name: `state-archive-trial-${stateId}` })
      .execute();
    await copyIntoTable(
      session,
      'public.state_versions',
      [
        ['id', 'uuid'],
        ['tenant_id', 'uuid'],
        ['state_id', 'uuid'],
        ['serial', 'bigint'],
        ['raw_state', 'jsonb'],
      ],
      [[versionId, tenant_id, stateId, 1n, streamed(document ?? EMPTY_DOCUMENT)]],
    );
    await insertResourceRows(
      session,
      { tenantId: tenant_id, stateId },
      resources.map((resource) => ({
        resource,
        createSerial: 1n,
        deleteSerial: null,
        createdAt: '2000-01-01T00:00:00.000000Z',
      })),
    );
    await insertOutputRows(session, tenant_id, [{ versionId, outputs }]);
    throw new TrialOver();
  }
}

const PIECE_BYTES = 65_536;

/** The document in pieces: whole, it would be gathered whole once more on its way. */
function streamed(bytes: Buffer): StreamedValue {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
  }
  return { byteLength: bytes.length, content: pieces() };
}

interface DoubtfulRows {
  readonly document: Buffer | null;
  readonly resources: ProjectedResource[];
  readonly outputs: StateOutput[];
}

function isDoubtful({ bytes, depth, tokens }: StateDocument): boolean {
  return (
    depth > DOUBTLESS_DEPTH ||
    tokens > DOUBTLESS_TOKENS ||
    bytes.length + JSONB_BYTES_A_TOKEN * tokens > JSONB_BYTES
  );
}

function isLongKey(text: string): boolean {
  // No character of UTF-16 takes more than three bytes of UTF-8.
  return text.length * 3 > DOUBTLESS_KEY_BYTES && Buffer.byteLength(text) > DOUBTLESS_KEY_BYTES;
}

function refusalFor(
  what: string,
  error: UnstorableValueError,
  { resources, outputs }: DoubtfulRows,
): RestoreRefusedError {
  const copied = copiedRow(error);
  const resource = copied?.table === 'resources' ? resources[copied.row] : undefined;
  if (resource !== undefined) {
    const reason = `its address or its type is too long for Kilolock's index; ${refusalText(error)}`;
    return unsupportedDocument(what, resourcePath(resource.place), reason, error);
  }
  const output = copied?.table === 'outputs' ? outputs[copied.row] : undefined;
  if (output !== undefined) {
    const reason = `its name is too long for Kilolock's index; ${refusalText(error)}`;
    return unsupportedDocument(what, outputPath(output.name), reason, error);
  }
  return unsupportedDocument(what, '$', refusalText(error), error);
}
