import { randomUUID } from 'node:crypto';
import { present } from '../base/invariant.ts';
import { type DatabaseSession, inTransaction, type KilolockDatabase } from '../database/connection.ts';
import { copyIntoTable, type StreamedValue } from '../database/copy.ts';
import { copiedRow, isUnstorableValue, refusalText, type UnstorableValueError } from '../database/errors.ts';
import type { DocumentFault } from '../inspection/errors.ts';
import type { DoubtfulRows, Storage } from '../inspection/storage.ts';
import { outputPath, resourcePath } from '../terraform/json-path.ts';
import { insertOutputRows } from './outputs.ts';
import { insertResourceRows } from './resource-rows.ts';

const EMPTY_DOCUMENT = Buffer.from('{}');

/** Ends the transaction of a trial: nothing of it stays. */
class TrialOver extends Error {}

/** Asks the database that is to hold a history, in transactions of which nothing stays. */
export class DatabaseStorage implements Storage {
  readonly #database: KilolockDatabase;
  readonly #tenantId: string;

  /** @param tenantId whose rows they would be. */
  constructor(database: KilolockDatabase, tenantId: string) {
    this.#database = database;
    this.#tenantId = tenantId;
  }

  async jsonbText(document: Uint8Array): Promise<Uint8Array | DocumentFault | null> {
    try {
      return await inTransaction(this.#database, 'print', (session) => printed(session, document));
    } catch (error) {
      if (isUnstorableValue(error)) return { path: '$', reason: refusalText(error) };
      throw error;
    }
  }

  async faultOf(rows: DoubtfulRows): Promise<DocumentFault | null> {
    try {
      await inTransaction(this.#database, 'restore', (session) => this.#tryOut(session, rows));
    } catch (error) {
      if (error instanceof TrialOver) return null;
      if (isUnstorableValue(error)) return faultFor(error, rows);
      throw error;
    }
    return null;
  }

  async #tryOut(session: DatabaseSession, { document, resources, outputs }: DoubtfulRows): Promise<never> {
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
        ['id', 'uuid', () => versionId],
        ['tenant_id', 'uuid', () => tenant_id],
        ['state_id', 'uuid', () => stateId],
        ['serial', 'bigint', () => 1n],
        ['raw_state', 'jsonb', streamed],
      ],
      [document ?? EMPTY_DOCUMENT],
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
    await insertOutputRows(
      session,
      tenant_id,
      outputs.map((output) => ({ ...output, versionId })),
    );
    throw new TrialOver();
  }
}

/** Takes and gives bytes as they are: as a string, a document of half a gigabyte would end the process. */
const RAW = { getTypeParser: () => (value: Buffer) => value };

/** Null when it is the document as it stands, so that nothing has to come back. */
async function printed(session: DatabaseSession, document: Uint8Array): Promise<Buffer | null> {
  const query = {
    text: `select nullif(printed, document) as printed from (
      select document, document::pg_catalog.jsonb::pg_catalog.text as printed
      from (select pg_catalog.convert_from($1, 'UTF8') as document offset 0) given
      offset 0) asked`,
    values: [Buffer.from(document.buffer, document.byteOffset, document.byteLength)],
    binary: true,
    types: RAW,
  };
  const { rows } = await session.answered(session.client.query<{ printed: Buffer | null }>(query));
  return present(rows[0], 'a SELECT without FROM gives one row').printed;
}

const PIECE_BYTES = 65_536;

/** The document in pieces: whole, it would be gathered whole once more on its way. */
function streamed(bytes: Uint8Array): StreamedValue {
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
  }
  return { byteLength: bytes.length, content: pieces() };
}

function faultFor(error: UnstorableValueError, { resources, outputs }: DoubtfulRows): DocumentFault {
  const copied = copiedRow(error);
  const resource = copied?.table === 'resources' ? resources[copied.row] : undefined;
  if (resource !== undefined) {
    return {
      path: resourcePath(resource.place),
      reason: `its address or its type is too long for Kilolock's index; ${refusalText(error)}`,
    };
  }
  const output = copied?.table === 'outputs' ? outputs[copied.row] : undefined;
  if (output !== undefined) {
    return {
      path: outputPath(output.name),
      reason: `its name is too long for Kilolock's index; ${refusalText(error)}`,
    };
  }
  return { path: '$', reason: refusalText(error) };
}
