import { ArchiveError, quoted } from './errors.ts';
import { travels } from './event-kinds.ts';
import { type ArchiveLimits, MEMBER } from './format.ts';
import { byTagName } from './history-digest.ts';
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
          MEMBER.manifest,
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
   * @throws ArchiveError ARCHIVE_INCONSISTENT for a tag on a serial that is not held, one given twice or out of
   *   order, one that Kilolock's table would refuse (data model 1.3), or another number of tags than the manifest says.
   */
  checkTags(tags: readonly ArchivedTag[]): void {
    let previous: ArchivedTag | null = null;
    for (const each of tags) {
      const { tag, serial } = each;
      const fault = tagNameFault(tag);
      if (fault !== null) throw inconsistent(MEMBER.tags, `tag ${quoted(tag)} ${fault}`);
      const order = previous === null ? -1 : byTagName(previous, each);
      if (order === 0) throw inconsistent(MEMBER.tags, `tag ${quoted(tag)} is given twice`);
      if (order > 0) {
        throw inconsistent(
          MEMBER.tags,
          `tag ${quoted(tag)} stands behind ${quoted(previous?.tag ?? '')}; tags stand in the order of code points`,
        );
      }
      if (!this.#serials.has(serial)) {
        throw inconsistent(
          MEMBER.tags,
          `tag ${quoted(tag)} names serial ${serial}, which the archive does not hold`,
        );
      }
      previous = each;
    }
    checkCount('tags', this.#manifest.counts.tags, tags.length, MEMBER.tags);
  }

  /**
   * @throws ArchiveError ARCHIVE_INCONSISTENT for a link to a serial that is not held, an id given twice, or a kind that no
   *   archive holds.
   */
  checkEvent(event: ArchivedEvent): void {
    if (!travels(event.kind)) {
      throw inconsistent(
        MEMBER.events,
        `event ${event.id} is of the kind ${quoted(event.kind)}, which is in no archive`,
      );
    }
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
  checkResource(span: ArchivedResource): void {
    const fault = spanFault(span);
    if (fault !== null) {
      throw inconsistent(
        MEMBER.resources,
        `the span of ${quoted(span.address)} from serial ${span.createSerial} ${fault}`,
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

/** Which rule of the table `resources` a span breaks, or null (data model 1.4). */
export function spanFault({ createSerial, deleteSerial }: ArchivedResource): string | null {
  if (deleteSerial === null || deleteSerial > createSerial) return null;
  return `ends at serial ${deleteSerial}`;
}

/** Which rule of `state_version_tags_no_reserved_names` the name of a tag breaks, or null (data model 1.3). */
export function tagNameFault(tag: string): string | null {
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
  return new ArchiveError('ARCHIVE_INCONSISTENT', message, member);
}
