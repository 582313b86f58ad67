import { randomUUID } from 'node:crypto';
import { type DatabaseSession, inTransaction, type KilolockDatabase } from '../database/connection.ts';
import { copyIntoTable, type StreamedValue } from '../database/copy.ts';
import { copiedRow, isUnstorableValue, refusalText, type UnstorableValueError } from '../database/errors.ts';
import { askWithLongValue } from '../database/long-value.ts';
import type { DocumentFault } from '../inspection/errors.ts';
import type { DoubtfulRows, Storage } from '../inspection/storage.ts';
import { outputPath, resourcePath } from '../terraform/json-path.ts';
import { insertOutputRows, insertResourceRows } from './state-rows.ts';

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
    await insertOutputRows(session, tenant_id, () => versionId, outputs);
    throw new TrialOver();
  }
}

/**
 * Null when it is the document as it stands, so that nothing has to come back. What does comes in pieces, each byte as the character
 * of its number: pg makes a string of whatever comes, and one of hundreds of megabytes would hold up everybody else.
 */
async function printed(session: DatabaseSession, document: Uint8Array): Promise<Uint8Array | null> {
  const text = `
    select whole.length, pg_catalog.convert_from(pg_catalog.substr(whole.bytes, piece.begin, ${PIECE_BYTES}), 'LATIN1')
    from (
      select bytes, pg_catalog.octet_length(bytes) as length from (
        select pg_catalog.convert_to(nullif(printed, document), 'UTF8') as bytes from (
          select document, document::pg_catalog.jsonb::pg_catalog.text as printed
          from (select pg_catalog.convert_from($1, 'UTF8') as document offset 0) given
          offset 0) asked
        offset 0) told
      offset 0) whole
    left join lateral pg_catalog.generate_series(1, whole.length, ${PIECE_BYTES}) as piece (begin) on true`;
  let bytes: Buffer<ArrayBuffer> | null = null;
  let used = 0;
  await askWithLongValue(session, text, document, ([length, piece]) => {
    if (length == null || piece == null) return;
    bytes ??= Buffer.from(new ArrayBuffer(Number(length)));
    used += bytes.write(piece, used, 'latin1');
  });
  return bytes;
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
  const tooLong = (path: string, what: string) => ({
    path,
    reason: `${what} is too long for Kilolock's index; ${refusalText(error)}`,
  });
  const resource = copied?.table === 'resources' ? resources[copied.row] : undefined;
  if (resource !== undefined) return tooLong(resourcePath(resource.place), 'its address or its type');
  const output = copied?.table === 'outputs' ? outputs[copied.row] : undefined;
  if (output !== undefined) return tooLong(outputPath(output.name), 'its name');
  return { path: '$', reason: refusalText(error) };
}
