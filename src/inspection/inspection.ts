import { rmSync } from 'node:fs';
import { historyDigest } from '../archive/history-digest.ts';
import type { ArchiveManifest } from '../archive/model.ts';
import { type ArchiveMembers, type VerifiedArchive, verified } from '../archive/reader.ts';
import type { WrittenArchive } from '../archive/writer.ts';
import { present } from '../base/invariant.ts';
import { readInto } from '../base/read-into.ts';
import {
  DEFAULT_STATE_DOCUMENT_LIMITS,
  readStateDocument,
  type StateDocument,
} from '../terraform/document.ts';
import { MAX_COMPARED_BYTES } from '../terraform/limits.ts';
import { CarriedSpans } from './carried-spans.ts';
import { DocumentChecks } from './document-checks.ts';
import { RefusedDocumentError, rawStateOf, refusing } from './errors.ts';
import { restorablePayload } from './event-payload.ts';
import { RowFileWriter } from './row-file.ts';
import type { SharedProgress } from './shared-progress.ts';
import { SpanDerivation } from './span-derivation.ts';
import { addEventRow, addTagRow, addVersionRow, type HistoryRowPaths } from './spooled-rows.ts';
import type { Storage } from './storage.ts';
import { type RestoreWarning, WarningCollector } from './warnings.ts';

/**
 * What an inspection says of an archive that is to be restored. It is of a bounded size: what goes with the length of the
 * history is in the rows that were put aside.
 */
export interface RestoreFindings
  extends Pick<
      VerifiedArchive,
      'rawBytes' | 'historyDigest' | 'sha256' | 'sizeBytes' | 'counts' | 'signature'
    >,
    Pick<ArchiveManifest, 'state' | 'rawStateText'> {
  /** Rows of `resources` that a restore writes. */
  readonly resourceSpans: number;
  /** Whether they are derived from the raw states, because those carried are absent or disagree with them. */
  readonly spansAreDerived: boolean;
  /** Rows of `outputs`, over all versions. */
  readonly outputs: number;
  /** Length in bytes of the longest raw state. */
  readonly longestRawState: number;
  /** Managed resource instances of the current version: what quotas count. */
  readonly managedInstances: number;
  /** How many raw states jsonb keeps in another spelling than the archive's. */
  readonly normalisedVersions: number;
  /** The digest of the history as it will be kept: the archive's own, but for such raw states. */
  readonly keptDigest: string;
  readonly warnings: readonly RestoreWarning[];
}

/**
 * Verifies an archive that is being written, and checks that every document in it could be restored: nothing leaves that
 * could not come back.
 *
 * @throws ArchiveError when it is not a sound archive.
 * @throws RefusedDocumentError for a document that no import would take.
 */
export async function inspectForExport(
  members: ArchiveMembers,
  turns: LargeDocumentTurns,
  progress: SharedProgress,
): Promise<WrittenArchive> {
  let former: StateDocument | undefined;
  using memory = new DocumentMemory(turns, () => {
    former = undefined;
  });
  const { sha256, sizeBytes, historyDigest, versionDigests, rawBytes, counts } = await verified(
    members,
    async (member) => {
      if (member.kind !== 'version') return;
      const { version, byteLength, content } = member;
      progress.begin(version.serial);
      await memory.whileFilled(content, byteLength, (bytes) => {
        former = refusing(rawStateOf(version.serial), () =>
          readStateDocument(bytes, DEFAULT_STATE_DOCUMENT_LIMITS, former),
        );
      });
      progress.end(byteLength);
    },
  );
  return { sha256, sizeBytes, historyDigest, versionDigests, rawBytes, counts };
}

/** What is to be inspected before a restore. */
export interface RestoreInspection {
  /** Reads the archive from its beginning. Spans that disagree with the raw states take a second reading. */
  readonly read: () => ArchiveMembers;
  /** A path that nobody uses, for what has to be put aside meanwhile. */
  readonly asidePath: string;
  /** Null: no rows are wanted. */
  readonly rows: HistoryRowPaths | null;
  readonly storage: Storage;
  readonly turns: LargeDocumentTurns;
}

/**
 * Verifies a whole archive, checks that Kilolock can hold every document in it, and settles which rows it amounts to.
 *
 * @throws ArchiveError when it is not a sound archive.
 * @throws RefusedDocumentError for a document that cannot be held. A damaged archive is told of first.
 */
export async function inspectForRestore(
  inspection: RestoreInspection,
  progress: SharedProgress,
): Promise<RestoreFindings> {
  const pass = await passOver(inspection, progress, (manifest, rows) =>
    manifest.counts.resources === 0
      ? new SpanDerivation(manifest.state.currentSerial, rows)
      : new CarriedSpans(inspection.asidePath, manifest.state.currentSerial, rows),
  );
  if (pass.spans instanceof SpanDerivation) return findingsOf(pass, 'the archive carries none');
  const { disagreement } = pass.spans;
  if (disagreement === null) return findingsOf(pass, null);
  const derived = await passOver(
    inspection,
    progress,
    ({ state }, rows) => new SpanDerivation(state.currentSerial, rows),
  );
  return findingsOf(derived, disagreement);
}

type Spans = CarriedSpans | SpanDerivation;

/** Reads the archive from end to end, checks its documents and has `spansOf` settle its spans. */
async function passOver(
  { read, rows, storage, turns }: RestoreInspection,
  progress: SharedProgress,
  spansOf: (manifest: ArchiveManifest, rows: RowFileWriter | null) => Spans,
) {
  progress.restart();
  await using files = new AsyncDisposableStack();
  const rowFiles = rows && openRowFiles(rows, files);
  const members = read();
  const first = await members.next();
  if (first.done || first.value.kind !== 'manifest') throw new Error('An archive begins with its manifest.');
  const { manifest } = first.value;
  const warnings = new WarningCollector();
  const checks = new DocumentChecks(manifest, storage, warnings, rowFiles?.outputs ?? null);
  using memory = new DocumentMemory(turns, () => checks.forgetFormer());
  const spans = spansOf(manifest, rowFiles?.resources ?? null);
  if (spans instanceof CarriedSpans) files.adopt(spans, (carried) => carried.close());
  const ids = new Map(manifest.versions.map(({ serial, id }) => [serial, id]));
  const versionIds = new Set(ids.values());
  let refusal: RefusedDocumentError | null = null;
  const archive = await verified(members, async (member) => {
    if (member.kind === 'event' && rowFiles !== null) {
      const { serial, payload, ...event } = member.event;
      const versionId = serial === null ? null : present(ids.get(serial), 'the archive holds it');
      addEventRow(rowFiles.events, {
        ...{ ...event, versionId },
        payload: restorablePayload(payload, (id) => versionIds.has(id)),
      });
    }
    if (member.kind === 'resource' && spans instanceof CarriedSpans) spans.add(member.resource);
    if (member.kind !== 'version') return;
    const { version, byteLength, content } = member;
    progress.begin(version.serial);
    // Until the sums at the end agree, a bad document may be a damaged file: that would be the truer answer.
    if (refusal === null) {
      try {
        await memory.whileFilled(content, byteLength, async (bytes) => {
          await spans.apply(version, await checks.check(version, bytes));
        });
      } catch (error) {
        if (!(error instanceof RefusedDocumentError)) throw error;
        refusal = error;
      }
    }
    progress.end(byteLength);
  });
  if (refusal !== null) throw refusal;
  checks.finish();
  await spans.finish();
  for (const { code, message } of archive.warnings) warnings.add(code, message);
  const versions = manifest.versions.map((version, i) => ({
    ...version,
    sha256: checks.normalised.get(version.serial) ?? present(archive.versionDigests[i], 'it has one').sha256,
  }));
  if (rowFiles !== null) {
    for (const version of versions) addVersionRow(rowFiles.versions, version);
    for (const { serial, ...tag } of archive.tags) {
      addTagRow(rowFiles.tags, { ...tag, versionId: present(ids.get(serial), 'the archive holds it') });
    }
  }
  return { archive, checks, spans, warnings, versions };
}

function openRowFiles(
  paths: HistoryRowPaths,
  files: AsyncDisposableStack,
): Record<keyof HistoryRowPaths, RowFileWriter> {
  const open = (path: string) => {
    // An earlier reading may have put rows aside that turned out wrong.
    rmSync(path, { force: true });
    return files.adopt(new RowFileWriter(path), (file) => file.close());
  };
  const { resources, outputs, versions, tags, events } = paths;
  return {
    ...{ resources: open(resources), outputs: open(outputs), versions: open(versions) },
    ...{ tags: open(tags), events: open(events) },
  };
}

/** @param disagreement why the spans are not those the archive carries; null when they are. */
function findingsOf(
  { archive, checks, spans, warnings, versions }: Awaited<ReturnType<typeof passOver>>,
  disagreement: string | null,
): RestoreFindings {
  const { manifest, tags, rawBytes, sha256, sizeBytes, counts, signature } = archive;
  const { state, rawStateText } = manifest;
  const resourceSpans = spans instanceof SpanDerivation ? spans.count : counts.resources;
  const spansAreDerived = disagreement !== null && (counts.resources > 0 || resourceSpans > 0);
  if (spansAreDerived) {
    warnings.add(
      'RESOURCE_SPANS_DERIVED',
      `The resource spans are derived from the raw states, each instance hashed as Terraform writes it: ${disagreement}.`,
    );
  } else if (spans instanceof CarriedSpans && spans.otherHashes > 0) {
    warnings.add(
      'RESOURCE_HASHES_KEPT',
      `${spans.otherHashes} resource spans keep a hash of another spelling than Terraform's, as Kilolock recorded it.`,
    );
  }
  const { outputs, managedInstances, normalised } = checks;
  return {
    ...{ state, rawStateText, rawBytes, sha256, sizeBytes, counts, signature },
    historyDigest: archive.historyDigest,
    keptDigest: normalised.size === 0 ? archive.historyDigest : historyDigest({ ...state, versions, tags }),
    normalisedVersions: normalised.size,
    ...{ resourceSpans, spansAreDerived, outputs, managedInstances },
    longestRawState: archive.versionDigests.reduce((most, { byteLength }) => Math.max(most, byteLength), 0),
    warnings: warnings.list(),
  };
}

/** Above this a document is not in memory beside another such one: it is compared with none. */
export const LARGE_DOCUMENT_BYTES = MAX_COMPARED_BYTES;
/** A state grows by and by: memory for it need not be had anew each time. */
const ROOM_TO_GROW = 1.125;

/** Large documents take turns, over all inspections of a process: the memory for one of them is all that there is. */
export interface LargeDocumentTurns {
  /** Waits for a turn. */
  take(): Promise<void>;
  /** Ends it. */
  end(): void;
}

/** Memory for the documents of a history: two pieces take turns, so that a document can be compared with the one before. */
class DocumentMemory {
  readonly #turns: LargeDocumentTurns;
  readonly #forgetFormer: () => void;
  #current = new ArrayBuffer(0);
  #former = new ArrayBuffer(0);

  /** @param forgetFormer called before the memory of the former document is used anew. */
  constructor(turns: LargeDocumentTurns, forgetFormer: () => void) {
    this.#turns = turns;
    this.#forgetFormer = forgetFormer;
  }

  /**
   * Calls `look` with the whole of `content`, which stays until the document after the next one is asked for, if it is not
   * forgotten before.
   */
  async whileFilled(
    content: AsyncIterable<Uint8Array>,
    byteLength: number,
    look: (bytes: Buffer) => void | Promise<void>,
  ): Promise<void> {
    const isAlone = byteLength > LARGE_DOCUMENT_BYTES;
    if (isAlone) {
      this.#giveBack();
      await this.#turns.take();
    }
    try {
      [this.#current, this.#former] = [this.#former, this.#current];
      if (byteLength > this.#current.byteLength) {
        this.#current = Buffer.allocUnsafeSlow(Math.ceil(byteLength * (isAlone ? 1 : ROOM_TO_GROW))).buffer;
      }
      const bytes = Buffer.from(this.#current, 0, byteLength);
      await readInto(bytes, content);
      await look(bytes);
    } finally {
      if (isAlone) {
        this.#giveBack();
        this.#turns.end();
      }
    }
  }

  /** Gives the memory back at once: to wait until somebody collects it may be to have both the old and the new. */
  [Symbol.dispose](): void {
    this.#giveBack();
  }

  #giveBack(): void {
    this.#forgetFormer();
    for (const memory of [this.#current, this.#former]) memory.transfer(0);
    this.#current = new ArrayBuffer(0);
    this.#former = new ArrayBuffer(0);
  }
}
