import { createHash } from 'node:crypto';
import type { ArchivedTag, ArchivedVersion } from './model.ts';

/** What {@link historyDigest} covers. */
export interface DigestedHistory {
  lineage: string | null;
  currentSerial: bigint;
  /** Every version with the SHA-256 (lower-case hex) of its raw bytes; in any order. */
  versions: Iterable<ArchivedVersion & { sha256: string }>;
  /** Every tag; in any order. */
  tags: Iterable<ArchivedTag>;
}

/**
 * The digest of a history: SHA-256, in lower-case hex, over the canonical text that `docs/archive-format.md`
 * defines. Two backends that hold the same versions, tags, lineage and current pointer get the same digest,
 * because ids and everything about the export are left out.
 */
export function historyDigest({ lineage, currentSerial, versions, tags }: DigestedHistory): string {
  const digest = new HistoryDigest(lineage, currentSerial);
  for (const version of [...versions].sort(bySerial)) digest.addVersion(version);
  for (const tag of [...tags].sort(byTagName)) digest.addTag(tag);
  return digest.end();
}

/** The same digest of a history that comes piece by piece: one of a hundred thousand versions takes most of a second. */
export class HistoryDigest {
  readonly #hash = createHash('sha256');

  constructor(lineage: string | null, currentSerial: bigint) {
    this.#hash.update('kilolock-state-history/v1\n');
    this.#hash.update(`lineage ${field(lineage)}\n`);
    this.#hash.update(`current_serial ${field(String(currentSerial))}\n`);
  }

  /** Versions come by ascending serial, each with the SHA-256 of its raw bytes. */
  addVersion(version: ArchivedVersion & { sha256: string }): void {
    const { serial, sha256, terraformVersion, source, createdAt, createdBy } = version;
    const fields = [String(serial), sha256, terraformVersion, source, createdAt, createdBy];
    this.#hash.update(line('version', fields));
  }

  /** Tags come after all versions, in the order of {@link byTagName}. */
  addTag({ tag, serial, description, actor, createdAt, updatedAt }: ArchivedTag): void {
    this.#hash.update(line('tag', [tag, String(serial), description, actor, createdAt, updatedAt]));
  }

  /** The digest, lower-case hex. */
  end(): string {
    return this.#hash.digest('hex');
  }
}

/** Order of tags by the UTF-8 bytes of their names, which is the order of Unicode code points. */
export function byTagName(a: { tag: string }, b: { tag: string }): number {
  return Buffer.compare(Buffer.from(a.tag), Buffer.from(b.tag));
}

function bySerial(a: { serial: bigint }, b: { serial: bigint }): number {
  return a.serial < b.serial ? -1 : a.serial > b.serial ? 1 : 0;
}

function line(kind: string, values: readonly (string | null)[]): string {
  return `${kind} ${values.map(field).join(' ')}\n`;
}

/** A length before the text: no text can pass for two fields, and null differs from ''. */
function field(value: string | null): string {
  return value === null ? '-' : `${Buffer.byteLength(value)}:${value}`;
}
