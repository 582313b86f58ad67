import { GraphQLError } from 'graphql';
import type { OperationSize } from './operation-size.ts';

/** The most tokens a GraphQL document may have; parsing stops there. It bounds what may be written of any kind. */
export const MAX_DOCUMENT_TOKENS = 2_000;

/** How many references of `_entities` one request is answered; each beyond them fails alone. */
export const ENTITIES_ANSWERED = {
  /** To a caller that comes by itself. */
  caller: 100,
  /** To the gateway, which gathers what many lists refer to, several fetches in one request, and cannot split them. */
  gateway: 2_000,
} as const;

/** What one GraphQL operation of a caller may ask for; the gateway may ask for more of the last two. */
export const QUERY_LIMITS = {
  /** Levels of nested fields. */
  depth: 12,
  /** References in `_entities`, most of which get an error each, see {@link ENTITIES_ANSWERED}. */
  representations: 5 * ENTITIES_ANSWERED.caller,
  /** Points of cost by `@cost` and `@listSize` of the schema. */
  cost: 10_000,
} as const;

/** How many references a request is answered, by the context its resolvers are given. */
export function entitiesAnswered(context: { readonly fromGateway?: unknown }): number {
  return context.fromGateway === true ? ENTITIES_ANSWERED.gateway : ENTITIES_ANSWERED.caller;
}

/**
 * Refuses an operation that asks for more than {@link QUERY_LIMITS}.
 *
 * @param answered how many references it is answered: both limits on them, and the cost that they may have, go with it.
 * @throws GraphQLError QUERY_TOO_LARGE with the limit's name and its maximum.
 */
export function refuseTooLarge(found: OperationSize, answered: number): void {
  const share = answered / ENTITIES_ANSWERED.caller;
  const references = Math.min(found.representations, answered);
  const maxima = {
    depth: QUERY_LIMITS.depth,
    representations: QUERY_LIMITS.representations * share,
    cost: QUERY_LIMITS.cost * Math.max(1, references / ENTITIES_ANSWERED.caller),
  };
  for (const limit of ['depth', 'representations', 'cost'] as const) {
    const maximum = maxima[limit];
    if (found[limit] <= maximum) continue;
    throw new GraphQLError(
      `The operation asks for too much: ${limit} ${found[limit]}, and ${maximum} is accepted. Ask for less, or in several requests.`,
      { extensions: { code: 'QUERY_TOO_LARGE', limit, maximum, http: { status: 400 } } },
    );
  }
}
