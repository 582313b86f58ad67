import { type MessagePort, threadId } from 'node:worker_threads';
import { readArchiveFile } from '../archive/archive-file.ts';
import { Growth } from '../archive/growth.ts';
import { readArchive } from '../archive/reader.ts';
import { type InspectionEvents, inspectForExport, inspectForRestore } from './inspection.ts';
import {
  type FromThread,
  type InspectionResult,
  type InspectionTask,
  type ToThread,
  toFailure,
} from './protocol.ts';
import type { Storage } from './storage.ts';

/** One inspection. Runs in a thread of its own: whatever a document costs, nobody else waits for it. */
export default async function inspect({
  port,
  path,
  limits,
  work,
}: InspectionTask): Promise<InspectionResult> {
  const events: InspectionEvents = {
    onVersion: (serial) => tell(port, { kind: 'version', serial, threadId }),
    onProgress: (progress) => tell(port, { kind: 'progress', progress }),
  };
  try {
    if (work.kind === 'export') {
      const members = readArchive(readArchiveFile(path, { grown: growthBeyond(port) }), limits);
      return { archive: await inspectForExport(members, events), findings: null };
    }
    const read = () => readArchive(readArchiveFile(path), limits);
    return await inspectForRestore({ read, ...work, storage: storageBeyond(port) }, events);
  } catch (error) {
    return { failure: toFailure(error) };
  } finally {
    port.close();
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
