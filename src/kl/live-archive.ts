import { join } from 'node:path';
import type { Context } from './context.ts';
import { exportState } from './export-state.ts';
import { Progress } from './progress.ts';
import { connect } from './service.ts';
import { historyOf } from './states.ts';

/**
 * Takes an archive of a state as it is now, to be looked into and thrown away.
 *
 * @param text the state's name, with or without `@` and a version.
 * @param directory where to put it.
 */
export async function takeLiveArchive(
  context: Context,
  text: string,
  directory: string,
): Promise<{ readonly path: string; readonly reference: string | null }> {
  const at = text.indexOf('@', 1);
  const name = at < 0 ? text : text.slice(0, at);
  const service = await connect(context);
  const { historyDigest } = await historyOf(service, name);
  const path = join(directory, 'live.klstate');
  using progress = await Progress.on(context.terminal);
  const { signal, identity } = context;
  const options = { replace: true, work: progress.begin(name), signal, identity };
  const exported = { name, path, historyDigest, isNamedByKind: false, sealing: null };
  await exportState(service, exported, options);
  return { path, reference: at < 0 ? null : text.slice(at + 1) };
}
