import { type MessagePort, threadId } from 'node:worker_threads';
import { readArchiveFile } from '../archive/archive-file.ts';
import { Growth } from '../archive/growth.ts';
import { readArchive } from '../archive/reader.ts';
import { type InspectionEvents, inspectForExport, inspectForRestore } from './inspection.ts';
import {
  type FromThread,
  type InspectionResult,
  type InspectionResults,
  type InspectionTask,
  type InspectionWork,
  type ToThread,
  toFailure,
} from './protocol.ts';
import { putAside, readSnapshot, SNAPSHOT } from './snapshot.ts';
import type { Storage } from './storage.ts';

/** One inspection. Runs in a thread of its own: whatever a document costs, nobody else waits for it. */
export default async function inspect({ port, work }: InspectionTask): Promise<InspectionResult> {
  tell(port, { kind: 'begun', threadId });
  try {
    return { found: await find(port, work) };
  } catch (error) {
    return { failure: toFailure(error) };
  } finally {
    port.close();
  }
}

async function find(
  port: MessagePort,
  work: InspectionWork,
): Promise<InspectionResults[InspectionWork['kind']]> {
  const events: InspectionEvents = {
    onDocument: (document) => tell(port, { kind: 'document', document }),
    onProgress: (progress) => tell(port, { kind: 'progress', progress }),
  };
  switch (work.kind) {
    case 'export': {
      const file = readArchiveFile(work.path, { grown: growthBeyond(port) });
      return inspectForExport(readArchive(file, work.limits), events);
    }
    case 'restore': {
      const read = () => readArchive(readArchiveFile(work.path), work.limits);
      return inspectForRestore({ ...work, read, storage: storageBeyond(port) }, events);
    }
    case 'snapshot': {
      const { buffer, byteOffset, byteLength } = work.bytes;
      events.onDocument(SNAPSHOT);
      const read = await readSnapshot(Buffer.from(buffer, byteOffset, byteLength), storageBeyond(port));
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

/** Has the other side ask the database. */
function storageBeyond(port: MessagePort): Storage {
  let answered: (answer: never) => void = () => {};
  port.on('message', (message: ToThread) => {
    if (message.kind === 'answer') answered(message.answer as never);
  });
  const ask = <Answer>(question: FromThread) =>
    new Promise<Answer>((resolve) => {
      answered = resolve;
      tell(port, question);
    });
  return {
    jsonbText: (document) => ask({ kind: 'ask', about: 'jsonbText', document }),
    faultOf: (rows) => ask({ kind: 'ask', about: 'faultOf', rows }),
  };
}

function tell(port: MessagePort, message: FromThread): void {
  port.postMessage(message);
}
