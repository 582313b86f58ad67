import { createReadStream } from 'node:fs';
import { type MessagePort, threadId } from 'node:worker_threads';
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
export default async function inspect(task: InspectionTask): Promise<InspectionResult> {
  const { port, path, limits, work } = task;
  const events: InspectionEvents = {
    onVersion: (serial) => tell(port, { kind: 'version', serial, threadId }),
    onProgress: (progress) => tell(port, { kind: 'progress', progress }),
  };
  const read = () => readArchive(createReadStream(path), limits);
  try {
    if (work.kind === 'export') return { archive: await inspectForExport(read(), events), findings: null };
    return await inspectForRestore({ read, ...work, storage: storageBeyond(port) }, events);
  } catch (error) {
    return { failure: toFailure(error) };
  } finally {
    port.close();
  }
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
