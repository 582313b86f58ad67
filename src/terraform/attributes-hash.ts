import { createHash } from 'node:crypto';

const SEPARATOR = '\u001f';

/** What `attributes_hash` covers, in the order in which it does (data model 3.5). */
export interface AttributesHashFields {
  readonly mode: string;
  readonly type: string;
  readonly name: string;
  readonly provider: string;
  readonly modulePath: string;
  readonly indexKind: string;
  readonly indexValue: string | null;
  readonly schemaVersion: number;
  /** The text of the attributes in some spelling: it is the bytes that are hashed, not the values. */
  readonly attributes: Buffer;
  /** The text of the sensitive paths, likewise. */
  readonly sensitivePaths: Buffer;
  /** The text of the dependencies: compact JSON in Go's spelling, order kept. */
  readonly dependenciesRaw: string;
}

/** Writes a JSON text, in another spelling if it wants to, in pieces that are valid during the call only. */
export type TextSpelling = (text: Buffer, write: (piece: Buffer) => void) => void;

const asWritten: TextSpelling = (text, write) => write(text);

/**
 * The `attributes_hash` of a resource row: lowercase hex SHA-256 over eleven fields (data model 3.5).
 *
 * @param spelling - how the attributes and the sensitive paths are to be spelled; as they are by default.
 */
export function attributesHash(fields: AttributesHashFields, spelling: TextSpelling = asWritten): string {
  const { mode, type, name, provider, modulePath, indexKind, indexValue, schemaVersion } = fields;
  const leading = [
    mode,
    type,
    name,
    provider,
    modulePath,
    indexKind,
    indexValue ?? '',
    String(schemaVersion),
  ];
  const sha256 = createHash('sha256').update(leading.join(SEPARATOR) + SEPARATOR);
  const write = (piece: Buffer) => {
    sha256.update(piece);
  };
  spelling(fields.attributes, write);
  sha256.update(SEPARATOR);
  spelling(fields.sensitivePaths, write);
  return sha256.update(SEPARATOR + fields.dependenciesRaw).digest('hex');
}
