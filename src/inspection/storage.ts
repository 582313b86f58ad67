import type { StateDocument, StateOutput } from '../terraform/document.ts';
import type { ProjectedResource, Projection } from '../terraform/projection.ts';
import { INSTANCE } from '../terraform/state-index.ts';
import type { DocumentFault } from './errors.ts';

/** Deeper than any state of Terraform's, and far above what PostgreSQL's stack ends at. */
const DOUBTLESS_DEPTH = 1000;
/** An array or object of jsonb ends at more members than this, depending on how PostgreSQL grows its memory. */
const DOUBTLESS_WIDTH = 4_000_000;
/** Where a container of jsonb ends, in bytes of its binary form. */
const JSONB_BYTES = 268_435_455;
/** A row of a btree ends at 2,704 bytes, of which the other columns of Kilolock's indexes need at most 60. */
const DOUBTLESS_KEY_BYTES = 2600;

/** What only the PostgreSQL that is to hold a document can tell of it. */
export interface Storage {
  /** The text that jsonb gives out for a document, null when it is the same; or what keeps PostgreSQL from reading it. */
  jsonbText(document: Uint8Array): Promise<Uint8Array | DocumentFault | null>;
  /** What keeps PostgreSQL from holding rows that come near to its limits; null when nothing does. */
  faultOf(rows: DoubtfulRows): Promise<DocumentFault | null>;
}

/** What of a document comes near to PostgreSQL's limits, where these cannot be told from outside. */
export interface DoubtfulRows {
  /** The document itself, or null when that is in no doubt. */
  readonly document: Uint8Array | null;
  readonly resources: readonly ProjectedResource[];
  readonly outputs: readonly StateOutput[];
}

/**
 * What of a document is near to what PostgreSQL can hold; null for nearly all documents, which stand well below every
 * limit. Where the limits lie exactly nobody outside can tell: keys of an index are compressed before they are measured,
 * the depth of a document depends on the server's stack, and the size of one on how its memory grows.
 */
export function findDoubtfulRows(document: StateDocument, projection: Projection): DoubtfulRows | null {
  const resources: ProjectedResource[] = [];
  for (const row of projection.table.rows()) {
    // One that was taken over came through with the document before.
    if (document.index.instances.get(row, INSTANCE.from) !== 0) continue;
    const resource = projection.rowAt(row);
    // An address holds the type, too.
    if (isLongKey(resource.address)) resources.push(resource);
  }
  const outputs: StateOutput[] = [];
  for (const output of document.outputs()) if (isLongKey(output.name)) outputs.push(output);
  const isWholeDoubtful = isDoubtful(document);
  if (!isWholeDoubtful && resources.length + outputs.length === 0) return null;
  return { document: isWholeDoubtful ? document.bytes : null, resources, outputs };
}

function isDoubtful({ depth, width, jsonbBytes }: StateDocument): boolean {
  return depth > DOUBTLESS_DEPTH || width > DOUBTLESS_WIDTH || jsonbBytes > JSONB_BYTES;
}

function isLongKey(text: string): boolean {
  // No character of UTF-16 takes more than three bytes of UTF-8.
  return text.length * 3 > DOUBTLESS_KEY_BYTES && Buffer.byteLength(text) > DOUBTLESS_KEY_BYTES;
}
