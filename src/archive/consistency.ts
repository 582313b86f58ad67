import { ArchiveError, quoted } from './errors.ts';
import { travels } from './event-kinds.ts';
import { type ArchiveLimits, MEMBER } from './format.ts';
import { byTagName } from './history-digest.ts';
import type {
  ArchiveCounts,
  ArchivedEvent,
  ArchivedResource,
  ArchivedTag,
  ArchiveManifest,
} from './model.ts';

const MAX_TAG_CHARACTERS = 64;

/** What the parts of one history must agree on, beyond the shape of each. */
export class Consistency {
  readonly #counts: ArchiveCounts;
  readonly #serials: ReadonlySet<bigint>;
  readonly #eventIds = new Set<string>();
  readonly #found = { events: 0, resources: 0 };

  /**
   * @throws ArchiveError ARCHIVE_TOO_LARGE, or ARCHIVE_INCONSISTENT when the manifest contradicts itself: its
   *   count, serials that do not ascend, an id given twice, a current version it does not hold.
   */
  constructor(manifest: ArchiveManifest, limits: ArchiveLimits) {
    const { counts, versions } = manifest;
    for (const [what, found, limit] of [
      ['versions', counts.versions, limits.maxVersions],
      ['tags', counts.tags, limits.maxVersions],
      ['events', counts.events, limits.maxEvents],
    ] as const) {
      if (found > limit) {
        const message = `the archive has ${found} ${what}; the limit is ${limit}`;
        throw new ArchiveError('ARCHIVE_TOO_LARGE', message, MEMBER.manifest);
      }
    }
    refuse(MEMBER.manifest, countFault('versions', counts.versions, versions.length));
    refuse(MEMBER.manifest, manifestFault(manifest));
    this.#counts = counts;
    this.#serials = new Set(versions.map(({ serial }) => serial));
  }

  /**
   * @throws ArchiveError ARCHIVE_INCONSISTENT for a tag on a serial that is not held, one given twice or out of
   *   order, one that Kilolock's table would refuse (data model 1.3), or another number of tags than the manifest says.
   */
  checkTags(tags: readonly ArchivedTag[]): void {
    for (const [i, tag] of tags.entries()) {
      const fault = this.#tagFault(tag, tags[i - 1]);
      if (fault !== null) refuse(MEMBER.tags, `tag ${quoted(tag.tag)} ${fault}`);
    }
    refuse(MEMBER.tags, countFault('tags', this.#counts.tags, tags.length));
  }

  #tagFault(each: ArchivedTag, previous: ArchivedTag | undefined): string | null {
    const fault = tagNameFault(each.tag);
    if (fault !== null) return fault;
    const order = previous === undefined ? -1 : byTagName(previous, each);
    if (order === 0) return 'is given twice';
    if (order > 0) {
      return `stands behind ${quoted(previous?.tag ?? '')}; tags stand in the order of code points`;
    }
    if (this.#serials.has(each.serial)) return null;
    return `names serial ${each.serial}, which the archive does not hold`;
  }

  /**
   * @throws ArchiveError ARCHIVE_INCONSISTENT for a link to a serial that is not held, an id given twice, or a kind that no
   *   archive holds.
   */
  checkEvent(event: ArchivedEvent): void {
    const fault = this.#eventFault(event);
    if (fault !== null) refuse(MEMBER.events, `event ${event.id} ${fault}`);
    this.#eventIds.add(event.id);
    this.#count('events');
  }

  #eventFault({ id, kind, serial }: ArchivedEvent): string | null {
    if (!travels(kind)) return `is of the kind ${quoted(kind)}, which is in no archive`;
    if (serial !== null && !this.#serials.has(serial)) {
      return `is linked to serial ${serial}, which the archive does not hold`;
    }
    return this.#eventIds.has(id) ? 'is given twice' : null;
  }

  /**
   * Spans are derived from the raw states, so that only what no history can have is refused here.
   *
   * @throws ArchiveError ARCHIVE_INCONSISTENT for a span that ends at or before its beginning.
   */
  checkResource(span: ArchivedResource): void {
    const fault = spanFault(span);
    if (fault !== null) {
      refuse(
        MEMBER.resources,
        `the span of ${quoted(span.address)} from serial ${span.createSerial} ${fault}`,
      );
    }
    this.#count('resources');
  }

  /** @throws ArchiveError ARCHIVE_INCONSISTENT for another number of them than the manifest says. */
  checkCount(kind: 'events' | 'resources'): void {
    refuse(MEMBER[kind], countFault(kind, this.#counts[kind], this.#found[kind]));
  }

  #count(kind: 'events' | 'resources'): void {
    this.#found[kind] += 1;
    // Told before the end, so that a member of endless lines is not read to it.
    if (this.#found[kind] > this.#counts[kind]) this.checkCount(kind);
  }
}

function manifestFault({ state, versions }: ArchiveManifest): string | null {
  const ids = new Set<string>();
  let previous = -1n;
  for (const { id, serial } of versions) {
    if (serial === previous) return `serial ${serial} is given to two versions`;
    if (serial < previous) return `serial ${serial} stands behind ${previous}; serials must ascend`;
    if (ids.has(id)) return `the id of serial ${serial} is given to two versions`;
    ids.add(id);
    previous = serial;
  }
  const { currentSerial, currentVersionId } = state;
  const current = versions.find(({ serial }) => serial === currentSerial);
  if (current === undefined) return `the current serial ${currentSerial} is not among the versions`;
  return current.id === currentVersionId
    ? null
    : `the current version id is not that of serial ${currentSerial}`;
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

function countFault(what: string, announced: number, found: number): string | null {
  if (announced === found) return null;
  const actual = found > announced ? 'more' : String(found);
  return `the manifest counts ${announced} ${what}, the archive has ${actual}`;
}

/** @throws ArchiveError ARCHIVE_INCONSISTENT where there is a fault. */
function refuse(member: string, fault: string | null): void {
  if (fault !== null) throw new ArchiveError('ARCHIVE_INCONSISTENT', fault, member);
}
