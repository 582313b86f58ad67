import { rm } from 'node:fs/promises';
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { HistoryProgress } from '../archive/model.ts';
import type { WrittenArchive } from '../archive/writer.ts';
import { isErrno } from '../base/errno.ts';
import { Turns } from '../base/turns.ts';
import { type NamedDocument, RefusedDocumentError, rawStateOf } from './errors.ts';
import type { RestoreFindings } from './inspection.ts';
import {
  type FromThread,
  fromFailure,
  type InspectedFile,
  type InspectionResult,
  type InspectionResults,
  type InspectionTask,
  type InspectionWork,
  type ToThread,
} from './protocol.ts';
import { SharedProgress } from './shared-progress.ts';
import { type ReadSnapshot, readSnapshot, SNAPSHOT, snapshotAside } from './snapshot.ts';
import type { HistoryRowPaths, RowPaths } from './spooled-rows.ts';
import type { Storage } from './storage.ts';

/** An archive that is to be inspected. */
export interface Inspected extends InspectedFile {
  /** Ends the inspection; it rejects with the signal's reason. */
  readonly signal: AbortSignal;
  /** Called after each raw state that was looked at. */
  readonly onProgress?: (progress: HistoryProgress) => void;
}

/** What an inspection is connected with on this side. */
interface Surroundings extends Partial<Pick<Inspected, 'signal' | 'onProgress'>> {
  readonly storage?: Storage;
  readonly grown?: AsyncIterable<number>;
}

/** What one document may cost. */
export interface DocumentCosts {
  /** Heap of the thread, in MiB. */
  readonly maxHeapMb: number;
  /** How long the thread works at it, in its own time: a busy machine does not shorten it. */
  readonly maxDocumentCpuMs: number;
}

/** A document of a million instances, the most there may be, takes some ten seconds. */
const DEFAULT_COSTS: DocumentCosts = { maxHeapMb: 512, maxDocumentCpuMs: 120_000 };
/** How messages name an archive before its first version. */
const ARCHIVE: NamedDocument = { serial: null, name: 'The archive' };
const WATCH_MS = 250;
/** What is new in a thread is soon gone: with more room for it a thread takes more memory and no less time. */
const YOUNG_HEAP_MB = 8;
/** Read within a few milliseconds, whatever is in it. */
const SMALL_DOCUMENT_BYTES = 256 * 1024;
/** A thread that has nothing to do is kept this long. */
const IDLE_MS = 60_000;

/**
 * Inspects archives and documents in threads of their own, so that none blocks this one, swells without end, or ends the
 * process: what takes a thread's memory or time is refused.
 */
export class Inspector {
  readonly #pool: Piscina<InspectionTask, InspectionResult>;
  readonly #costs: DocumentCosts;
  readonly #largeDocuments = new Turns<Inspector>();
  /** The ends of the inspections that have no thread yet. */
  readonly #waiting = new Set<(reason: unknown) => void>();

  /**
   * @param threads how many inspections go on at a time; others wait.
   * @param ready how many threads are kept ready, though there is nothing to do: a new one takes a third of a second.
   */
  constructor(threads: number, ready: number, costs: Partial<DocumentCosts> = {}) {
    this.#costs = { ...DEFAULT_COSTS, ...costs };
    this.#pool = new Piscina({
      filename: new URL('./inspection.worker.ts', import.meta.url).href,
      minThreads: ready,
      maxThreads: threads,
      idleTimeout: IDLE_MS,
      atomics: 'disabled',
      resourceLimits: {
        maxOldGenerationSizeMb: this.#costs.maxHeapMb,
        maxYoungGenerationSizeMb: YOUNG_HEAP_MB,
      },
    });
    // A thread that could not be made: who waits for one would wait for ever.
    this.#pool.on('error', (error) => {
      for (const end of this.#waiting) end(error);
    });
  }

  /**
   * Verifies a whole archive, checks that Kilolock can hold every document in it, and settles its rows.
   *
   * @param rows files that the rows are put aside in, the caller's to remove; null: none.
   * @throws ArchiveError when it is not a sound archive.
   * @throws RefusedDocumentError for a document that cannot be held. A damaged archive is told of first.
   */
  async inspectForRestore(
    archive: Inspected,
    storage: Storage,
    rows: HistoryRowPaths | null,
  ): Promise<RestoreFindings> {
    const asidePath = `${archive.path}.spans`;
    try {
      const { path, limits, trust } = archive;
      const work = { kind: 'restore', path, limits, trust, asidePath, rows } as const;
      return await this.#run(work, { ...archive, storage });
    } finally {
      // A thread that was ended leaves what it put aside.
      await rm(asidePath, { force: true });
    }
  }

  /**
   * Verifies an archive while it is being written, and checks that every document in it could be restored.
   *
   * @param grown how many bytes of the file are written, ascending; it ends when the file is complete.
   * @throws ArchiveError when it is not a sound archive, RefusedDocumentError for a document that no import would take, and
   *   what `grown` throws.
   */
  async inspectForExport(archive: Inspected, grown: AsyncIterable<number>): Promise<WrittenArchive> {
    const { path, limits, trust } = archive;
    return this.#run({ kind: 'export', path, limits, trust }, { ...archive, grown });
  }

  /**
   * Reads a document that is to be appended: a small one in this thread, where that takes less than the way to another.
   *
   * @param rows files that its rows may be put aside in, the caller's to remove.
   * @throws RefusedDocumentError when Kilolock could not hold it.
   */
  async readSnapshot(bytes: Buffer, storage: Storage, rows: RowPaths): Promise<ReadSnapshot> {
    if (bytes.length <= SMALL_DOCUMENT_BYTES) return readSnapshot(bytes, storage);
    return snapshotAside(await this.#run({ kind: 'snapshot', bytes, rows }, { storage }), rows);
  }

  /** Ends all that is at work. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #run<Work extends InspectionWork>(
    work: Work,
    { signal, onProgress, storage, grown }: Surroundings,
  ): Promise<InspectionResults[Work['kind']]> {
    signal?.throwIfAborted();
    const { port1: port, port2 } = new MessageChannel();
    const ended = new AbortController();
    const end = (reason: unknown) => ended.abort(reason);
    this.#waiting.add(end);
    const progress = new SharedProgress();
    const watch = new ThreadWatch(progress, this.#costs.maxDocumentCpuMs, {
      end,
      onProgress,
      name: work.kind === 'snapshot' ? SNAPSHOT : ARCHIVE,
    });
    const onAbort = () => end(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    let endTurn = () => {};
    port.on('message', (message: FromThread) => {
      if (message.kind === 'begun') {
        this.#waiting.delete(end);
        watch.begin(this.#pool.threads.find(({ threadId }) => threadId === message.threadId));
      } else if (message.kind === 'turn over') endTurn();
      else if (message.about === 'turn') {
        const turn = this.#largeDocuments.take(this);
        endTurn = turn.end;
        void turn.begin.then(() => port.postMessage({ kind: 'answer', answer: null } satisfies ToThread));
      } else if (storage !== undefined) answer(storage, message, port).catch(end);
    });
    if (grown !== undefined) tellGrowth(grown, port).catch(end);
    try {
      const result = await this.#pool.run(
        { port: port2, progress: progress.memory, work },
        { signal: ended.signal, transferList: [port2] },
      );
      if ('failure' in result) throw fromFailure(result.failure);
      onProgress?.(progress.passed);
      return result.found as InspectionResults[Work['kind']];
    } catch (error) {
      if (ended.signal.aborted) throw ended.signal.reason;
      throw isErrno(error, 'ERR_WORKER_OUT_OF_MEMORY')
        ? watch.refusal(`it takes more than ${this.#costs.maxHeapMb} MiB to check`)
        : error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.#waiting.delete(end);
      watch.stop();
      endTurn();
      port.close();
    }
  }
}

async function answer(
  storage: Storage,
  question: Extract<FromThread, { about: keyof Storage }>,
  port: MessagePort,
): Promise<void> {
  if (question.about === 'faultOf') {
    const answer = await storage.faultOf(question.rows);
    port.postMessage({ kind: 'answer', answer } satisfies ToThread);
    return;
  }
  const printed = await storage.jsonbText(question.document);
  const answer = printed instanceof Uint8Array ? unshared(printed) : printed;
  port.postMessage(
    { kind: 'answer', answer } satisfies ToThread,
    answer instanceof Uint8Array ? [answer.buffer] : [],
  );
}

/** Bytes that can be given away: a view would take all that it is a view of along. */
function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer } = bytes;
  const isAll = buffer instanceof ArrayBuffer && buffer.byteLength === bytes.byteLength;
  return isAll ? new Uint8Array(buffer) : new Uint8Array(bytes);
}

async function tellGrowth(grown: AsyncIterable<number>, port: MessagePort): Promise<void> {
  for await (const bytes of grown) port.postMessage({ kind: 'grown', bytes } satisfies ToThread);
  port.postMessage({ kind: 'whole' } satisfies ToThread);
}

/** Whom a watch tells. */
interface Watcher {
  readonly onProgress: Inspected['onProgress'] | undefined;
  readonly end: (reason: unknown) => void;
  /** How to name what is inspected while no version is at hand. */
  readonly name: NamedDocument;
}

/** Watches how long a thread works at one document, and passes on how far it is. */
class ThreadWatch {
  readonly #progress: SharedProgress;
  readonly #maxMs: number;
  readonly #tell: Watcher;
  readonly #timer: NodeJS.Timeout;
  #thread: Worker | undefined;
  #serial: bigint | null = null;
  /** What the thread had used when the document at hand was first seen. */
  #before: NodeJS.CpuUsage | null = null;

  constructor(progress: SharedProgress, maxMs: number, tell: Watcher) {
    this.#progress = progress;
    this.#maxMs = maxMs;
    this.#tell = tell;
    this.#timer = setInterval(() => void this.#look(), WATCH_MS);
  }

  /** Notes which thread it is. */
  begin(thread: Worker | undefined): void {
    this.#thread = thread;
  }

  /** The refusal of the document at hand. */
  refusal(reason: string): RefusedDocumentError {
    const { serial } = this.#progress;
    return new RefusedDocumentError(serial === null ? this.#tell.name : rawStateOf(serial), {
      path: '$',
      reason,
    });
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    this.#tell.onProgress?.(this.#progress.passed);
    const { serial } = this.#progress;
    const used = await this.#thread?.cpuUsage().catch(() => undefined);
    if (used === undefined || serial !== this.#progress.serial) return;
    if (serial !== this.#serial) this.#before = null;
    this.#serial = serial;
    this.#before ??= used;
    const ms = (used.user + used.system - this.#before.user - this.#before.system) / 1000;
    if (ms > this.#maxMs) this.#tell.end(this.refusal(`it takes more than ${this.#maxMs} ms to check`));
  }
}
