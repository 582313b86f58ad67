import { getPriority, setPriority } from 'node:os';
import { type MessagePort, threadId } from 'node:worker_threads';
import { readArchiveFile } from '../archive/archive-file.ts';
import { Growth } from '../archive/growth.ts';
import { readArchive } from '../archive/reader.ts';
import { inspectForExport, inspectForRestore, type LargeDocumentTurns } from './inspection.ts';
import {
  type FromThread,
  type InspectionResult,
  type InspectionResults,
  type InspectionTask,
  type InspectionWork,
  type ToThread,
  toFailure,
} from './protocol.ts';
import { SharedProgress } from './shared-progress.ts';
import { putAside, readSnapshot } from './snapshot.ts';
import type { Storage } from './storage.ts';

/** How much nicer a thread is than the rest of the process: it gets a third of a processor that both want. */
const NICENESS = 5;
const LEAST_PRIORITY = 19;

// Who asks for something meanwhile goes first. Elsewhere than on Linux this would be said of the whole process.
if (process.platform === 'linux') setPriority(Math.min(getPriority() + NICENESS, LEAST_PRIORITY));

/** One inspection. Runs in a thread of its own: whatever a document costs, nobody else waits for it. */
export default async function inspect({ port, progress, work }: InspectionTask): Promise<InspectionResult> {
  tell(port, { kind: 'begun', threadId });
  try {
    return { found: await find(port, new SharedProgress(progress), work) };
  } catch (error) {
    return { failure: toFailure(error) };
  } finally {
    port.close();
  }
}

async function find(
  port: MessagePort,
  progress: SharedProgress,
  work: InspectionWork,
): Promise<InspectionResults[InspectionWork['kind']]> {
  switch (work.kind) {
    case 'export': {
      const file = readArchiveFile(work.path, { grown: growthBeyond(port) });
      return inspectForExport(readArchive(file, work), turnsOf(port, askingThrough(port)), progress);
    }
    case 'restore': {
      const read = () => readArchive(readArchiveFile(work.path), work);
      const ask = askingThrough(port);
      const beyond = { storage: storageBeyond(ask), turns: turnsOf(port, ask) };
      return inspectForRestore({ ...work, ...beyond, read }, progress);
    }
    case 'snapshot': {
      const { buffer, byteOffset, byteLength } = work.bytes;
      const storage = storageBeyond(askingThrough(port));
      const read = await readSnapshot(Buffer.from(buffer, byteOffset, byteLength), storage);
      await putAside(read, work.rows);
      const { lineage, terraformVersion, managedInstances } = read;
      return { lineage, terraformVersion, managedInstances };
    }
  }
}

/** How far the other side has written the file. */
function growthBeyond(port: MessagePort): Growth {
  const growth = new Growth();
  let length = 0;
  port.on('message', (message: ToThread) => {
    if (message.kind === 'whole') growth.complete(length);
    if (message.kind !== 'grown') return;
    length = message.bytes;
    growth.reach(length);
  });
  return growth;
}

type Ask = <Answer>(question: FromThread, handedOver?: readonly Uint8Array<ArrayBuffer>[]) => Promise<Answer>;

/** Questions to the other side, one at a time. */
function askingThrough(port: MessagePort): Ask {
  let answered: (answer: never) => void = () => {};
  port.on('message', (message: ToThread) => {
    if (message.kind === 'answer') answered(message.answer as never);
  });
  return (question, handedOver = []) =>
    new Promise((resolve) => {
      answered = resolve;
      port.postMessage(
        question,
        handedOver.map(({ buffer }) => buffer),
      );
    });
}

function turnsOf(port: MessagePort, ask: Ask): LargeDocumentTurns {
  return {
    take: () => ask({ kind: 'ask', about: 'turn' }),
    end: () => tell(port, { kind: 'turn over' }),
  };
}

/** Has the other side ask the database. What is asked about is copied here and handed over, so that nobody waits for that there. */
function storageBeyond(ask: Ask): Storage {
  return {
    jsonbText(bytes) {
      const document = new Uint8Array(bytes);
      return ask({ kind: 'ask', about: 'jsonbText', document }, [document]);
    },
    faultOf(doubtful) {
      const copies: Uint8Array<ArrayBuffer>[] = [];
      const keep = (bytes: Uint8Array) => {
        const copy = new Uint8Array(bytes);
        copies.push(copy);
        return Buffer.from(copy.buffer);
      };
      const rows = {
        document: doubtful.document && keep(doubtful.document),
        resources: doubtful.resources.map((row) => ({
          ...row,
          attributes: keep(row.attributes),
          sensitivePaths: keep(row.sensitivePaths),
        })),
        outputs: doubtful.outputs.map((row) => ({ ...row, value: keep(row.value), type: keep(row.type) })),
      };
      return ask({ kind: 'ask', about: 'faultOf', rows }, copies);
    },
  };
}

function tell(port: MessagePort, message: FromThread): void {
  port.postMessage(message);
}
