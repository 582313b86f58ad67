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
  const { stateArchive } = await digested(() =>
    service.ask<{ stateArchive: { readonly manifest: ManifestAnswer | null } | null }>(DOCUMENTS.history, {
      name,
    }),
  );
  if (stateArchive === null) throw notFound(name);
  if (stateArchive.manifest === null) throw new KlError('STATE_EMPTY', `${name} has no version yet.`);
  return stateArchive.manifest;
}

async function digested<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof KlError && error.code === 'DIGESTS_INCOMPLETE')) throw error;
    }
  }
}

/** A state; null when there is none that the credential may see. */
export async function findState(service: Service, name: string): Promise<StateAnswer | null> {
  const { stateArchive } = await service.ask<{ stateArchive: StateAnswer | null }>(DOCUMENTS.state, { name });
  return stateArchive;
}

/**
 * The states that a pattern names, as patterns of tokens do: an exact name, or a prefix that ends in `*`.
 */
export async function* matchingStates(
  service: Service,
  pattern: string,
): AsyncGenerator<StateAnswer, void, void> {
  const isPrefix = pattern.endsWith('*');
  const prefix = isPrefix ? pattern.slice(0, -1) : pattern;
  let after: string | null = null;
  do {
    const page = await statesFrom(service, prefix, after);
    for (const state of page.nodes) if (isPrefix || state.name === pattern) yield state;
    after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
  } while (after !== null);
}

/** One whose history cannot be read keeps no other from being listed. */
async function statesFrom(
  service: Service,
  prefix: string,
  after: string | null,
): Promise<Page<StateAnswer>> {
  const { stateArchives } = await service.ask<{ stateArchives: Page<StateAnswer> }>(
    DOCUMENTS.states,
    { prefix, after },
    { partly: true },
  );
  return stateArchives;
}

/** Of a state that is not there, or not for this credential: the two are never told apart. */
export function notFound(name: string): KlError {
  return new KlError(
    'STATE_NOT_FOUND',
    `There is no active state ${JSON.stringify(name)} that this credential may see.`,
  );
}
