import type { StateOutput } from '../terraform/document.ts';
import { LONG_ADDRESS, type ProjectedResource, type Projection } from '../terraform/projection.ts';
import type { StateIndex } from '../terraform/state-index.ts';
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
export function findDoubtfulRows(projection: Projection): DoubtfulRows | null {
  const { document } = projection;
  // An address holds the type, too. One that was taken over came through with the document before.
  const resources = projection.newLongAddresses
    .filter((row) => projection.table.counts(row))
    .map((row) => projection.rowAt(row))
    .filter(({ address }) => isLongKey(address));
  const outputs = [...document.outputs()].filter(({ name }) => isLongKey(name));
  const isWholeDoubtful = isDoubtful(document.index);
  if (!isWholeDoubtful && resources.length + outputs.length === 0) return null;
  return { document: isWholeDoubtful ? document.bytes : null, resources, outputs };
}

function isDoubtful({ depth, width, jsonbBytes }: StateIndex): boolean {
  return depth > DOUBTLESS_DEPTH || width > DOUBTLESS_WIDTH || jsonbBytes > JSONB_BYTES;
}

/** No character of UTF-16 takes more than three bytes of UTF-8: an address of {@link LONG_ADDRESS} characters is none. */
function isLongKey(text: string): boolean {
  return text.length > LONG_ADDRESS && Buffer.byteLength(text) > DOUBTLESS_KEY_BYTES;
}
