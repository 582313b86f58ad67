import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import type { BenchServer } from './databases.ts';

/** The machine and the programs a report was made with, and how busy others kept it at the start, as Markdown. */
export function describeMachine(server: BenchServer): string {
  const cores = availableParallelism();
  const model = cpus()[0]?.model.trim() ?? process.arch;
  const load = loadavg().map((average) => average.toFixed(2));
  return [
    `- Machine: ${cores} cores (${model}), ${(totalmem() / 2 ** 30).toFixed(0)} GiB, ${process.platform}`,
    `- Load average at the start: ${load.join(', ')} (1, 5, 15 minutes)`,
    `- Node.js ${process.version}, PostgreSQL ${server.version}, ${server.knowsLz4 ? 'knows' : 'does not know'} lz4`,
    `- ${new Date().toISOString().slice(0, 16).replace('T', ' ')} UTC`,
  ].join('\n');
}
