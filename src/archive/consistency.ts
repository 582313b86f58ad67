import { ArchiveError, quoted } from './errors.ts';
import { type ArchiveLimits, MEMBER } from './format.ts';
import type { ArchivedEvent, ArchivedResource, ArchivedTag, ArchiveManifest } from './model.ts';

const MAX_TAG_CHARACTERS = 64;

/** What the parts of one history must agree on, beyond the shape of each. */
export class Consistency {
  readonly #manifest: ArchiveManifest;
  readonly #serials: ReadonlySet<bigint>;
  readonly #eventIds = new Set<string>();
  #resources = 0;

  /**
   * @throws ArchiveError ARCHIVE_TOO_LARGE, or ARCHIVE_INCONSISTENT when the manifest contradicts itself: its
   *   count, serials that do not ascend, an id given twice, a current version it does not hold.
   */
  constructor(manifest: ArchiveManifest, limits: ArchiveLimits) {
    const { counts, state, versions } = manifest;
    for (const [what, found, limit] of [
      ['versions', counts.versions, limits.maxVersions],
      ['tags', counts.tags, limits.maxVersions],
      ['events', counts.events, limits.maxEvents],
    ] as const) {
      if (found > limit) {
        throw new ArchiveError(
          'ARCHIVE_TOO_LARGE',
          `the archive has ${found} ${what}; the limit is ${limit}`,
          {
            member: MEMBER.manifest,
          },
        );
      }
    }
    checkCount('versions', counts.versions, versions.length, MEMBER.manifest);
    const ids = new Set<string>();
    let previous = -1n;
    for (const { id, serial } of versions) {
      if (serial === previous)
        throw inconsistent(MEMBER.manifest, `serial ${serial} is given to two versions`);
      if (serial < previous) {
        throw inconsistent(
          MEMBER.manifest,
          `serial ${serial} stands behind ${previous}; serials must ascend`,
        );
      }
      if (ids.has(id))
        throw inconsistent(MEMBER.manifest, `the id of serial ${serial} is given to two versions`);
      ids.add(id);
      previous = serial;
    }
    const current = versions.find(({ serial }) => serial === state.currentSerial);
    if (current === undefined) {
      throw inconsistent(
        MEMBER.manifest,
        `the current serial ${state.currentSerial} is not among the versions`,
      );
    }
    if (current.id !== state.currentVersionId) {
      throw inconsistent(
        MEMBER.manifest,
        `the current version id is not that of serial ${state.currentSerial}`,
      );
    }
    this.#manifest = manifest;
    this.#serials = new Set(versions.map(({ serial }) => serial));
  }

  /**
   * @throws ArchiveError ARCHIVE_INCONSISTENT for a tag on a serial that is not held, one given twice, one that
   *   Kilolock's table would refuse (data model 1.3), or another number of tags than the manifest says.
   */
  checkTags(tags: readonly ArchivedTag[]): void {
    const seen = new Set<string>();
    for (const { tag, serial } of tags) {
      const broken = brokenTagRule(tag);
      if (broken !== null) throw inconsistent(MEMBER.tags, `tag ${quoted(tag)} ${broken}`);
      if (seen.has(tag)) throw inconsistent(MEMBER.tags, `tag ${quoted(tag)} is given twice`);
      if (!this.#serials.has(serial)) {
        throw inconsistent(
          MEMBER.tags,
          `tag ${quoted(tag)} names serial ${serial}, which the archive does not hold`,
        );
      }
      seen.add(tag);
    }
    checkCount('tags', this.#manifest.counts.tags, tags.length, MEMBER.tags);
  }

  /** @throws ArchiveError ARCHIVE_INCONSISTENT for a link to a serial that is not held, or an id given twice. */
  checkEvent(event: ArchivedEvent): void {
    if (event.serial !== null && !this.#serials.has(event.serial)) {
      throw inconsistent(
        MEMBER.events,
        `event ${event.id} is linked to serial ${event.serial}, which the archive does not hold`,
      );
    }
    if (this.#eventIds.has(event.id)) throw inconsistent(MEMBER.events, `event ${event.id} is given twice`);
    this.#eventIds.add(event.id);
    // Told before the end, so that a member of endless lines is not read to it.
    if (this.#eventIds.size > this.#manifest.counts.events) this.checkEventCount();
  }

  /** @throws ArchiveError ARCHIVE_INCONSISTENT for another number of events than the manifest says. */
  checkEventCount(): void {
    checkCount('events', this.#manifest.counts.events, this.#eventIds.size, MEMBER.events);
  }

  /**
   * Spans are derived from the raw states, so that only what no history can have is refused here.
   *
   * @throws ArchiveError ARCHIVE_INCONSISTENT for a span that ends at or before its beginning.
   */
  checkResource({ address, createSerial, deleteSerial }: ArchivedResource): void {
    if (deleteSerial !== null && deleteSerial <= createSerial) {
      throw inconsistent(
        MEMBER.resources,
        `the span of ${quoted(address)} from serial ${createSerial} ends at serial ${deleteSerial}`,
      );
    }
    this.#resources += 1;
    if (this.#resources > this.#manifest.counts.resources) this.checkResourceCount();
  }

  /** @throws ArchiveError ARCHIVE_INCONSISTENT for another number of spans than the manifest says. */
  checkResourceCount(): void {
    checkCount('resources', this.#manifest.counts.resources, this.#resources, MEMBER.resources);
  }
}

/** Which rule of `state_version_tags_no_reserved_names` a tag breaks, or null (data model 1.3). */
function brokenTagRule(tag: string): string | null {
  if (tag === '') return 'is empty';
  if (tag === 'current') return 'is a reserved word';
  if (tag.startsWith('@')) return 'begins with @';
  if (/^[0-9]+$/.test(tag)) return 'is a number';
  if ([...tag].length > MAX_TAG_CHARACTERS) return `is longer than ${MAX_TAG_CHARACTERS} characters`;
  return null;
}

function checkCount(what: string, announced: number, found: number, member: string): void {
  if (announced === found) return;
  const actual = found > announced ? 'more' : String(found);
  throw inconsistent(member, `the manifest counts ${announced} ${what}, the archive has ${actual}`);
}

function inconsistent(member: string, message: string): ArchiveError {
  return new ArchiveError('ARCHIVE_INCONSISTENT', message, { member });
}
