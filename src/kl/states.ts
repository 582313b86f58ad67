import { DOCUMENTS, type ManifestAnswer, type Page, type StateAnswer } from './documents.ts';
import { KlError } from './endings.ts';
import type { Service } from './service.ts';

/**
 * What an export of a state taken now would hold. A long history that nobody has asked for takes several requests: each digests a
 * part of it.
 *
 * @throws KlError STATE_NOT_FOUND, STATE_EMPTY.
 */
export async function historyOf(service: Service, name: string): Promise<ManifestAnswer> {
  for (;;) {
    try {
      const state = await service.ask(DOCUMENTS.history, { name });
      if (state === null) throw notFound(name);
      if (state.manifest === null) throw new KlError('STATE_EMPTY', `${name} has no version yet.`);
      return state.manifest;
    } catch (error) {
      if (!(error instanceof KlError && error.code === 'DIGESTS_INCOMPLETE')) throw error;
    }
  }
}

/**
 * The states that a pattern names, as patterns of tokens do: an exact name, or a prefix that ends in `*`. One whose history cannot
 * be read keeps no other from being listed.
 */
export async function* matchingStates(
  service: Service,
  pattern: string,
): AsyncGenerator<StateAnswer, void, void> {
  const isPrefix = pattern.endsWith('*');
  const prefix = isPrefix ? pattern.slice(0, -1) : pattern;
  let after: string | null = null;
  do {
    const page: Page<StateAnswer> = await service.ask(DOCUMENTS.states, { prefix, after }, { partly: true });
    for (const state of page.nodes) if (isPrefix || state.name === pattern) yield state;
    after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
  } while (after !== null);
}

/** Of a state that is not there, or not for this credential: the two are never told apart. */
export function notFound(name: string): KlError {
  return new KlError(
    'STATE_NOT_FOUND',
    `There is no active state ${JSON.stringify(name)} that this credential may see.`,
  );
}
