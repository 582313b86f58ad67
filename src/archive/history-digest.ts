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
export function historyDigest(history: DigestedHistory): string {
  const hash = createHash('sha256');
  hash.update('kilolock-state-history/v1\n');
  hash.update(`lineage ${field(history.lineage)}\n`);
  hash.update(`current_serial ${field(String(history.currentSerial))}\n`);
  for (const version of [...history.versions].sort(bySerial)) {
    hash.update(
      line('version', [
        String(version.serial),
        version.sha256,
        version.terraformVersion,
        version.source,
        version.createdAt,
        version.createdBy,
      ]),
    );
  }
  for (const tag of [...history.tags].sort(byTagName)) {
    hash.update(
      line('tag', [tag.tag, String(tag.serial), tag.description, tag.actor, tag.createdAt, tag.updatedAt]),
    );
  }
  return hash.digest('hex');
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
