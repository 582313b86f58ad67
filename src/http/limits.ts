import type { ApolloServerPlugin } from '@apollo/server';
import { GraphQLError, type GraphQLSchema, getVariableValues, type OperationDefinitionNode } from 'graphql';
import { ENTITIES_ANSWERED, entitiesAnswered } from './entity-limit.ts';
import { costOfOperation } from './limits-cost.ts';
import { countAllRepresentations, fragmentsOf, measureOperation } from './limits-document.ts';

/** The most tokens a GraphQL document may have; parsing stops there. */
export const MAX_DOCUMENT_TOKENS = 4_000;

/** What one GraphQL operation may ask for. Each is checked before anything of it runs. */
export const QUERY_LIMITS = {
  /** How deep fields nest, introspection aside, whose nesting graphql-js bounds itself. */
  depth: 12,
  /** Fields in all, those of a fragment as often as it is spread. */
  selections: 1_000,
  aliases: 30,
  directives: 50,
  /** Fields of `Query`. */
  rootFields: 20,
  /** Fields of `Mutation`, which run one after another. */
  mutationFields: 5,
  /**
   * References in `_entities`, in all, most of which get an error each, see {@link ENTITIES_ANSWERED}; for the gateway more, in
   * the same proportion.
   */
  representations: 5 * ENTITIES_ANSWERED.caller,
  /** The cost by `@cost` and `@listSize` of the schema; for the gateway more, see {@link COST_PER_ENTITY}. */
  cost: 10_000,
} as const;

/** What the gateway may ask of each entity it is answered, when that is more than {@link QUERY_LIMITS} allows in all. */
const COST_PER_ENTITY = QUERY_LIMITS.cost / ENTITIES_ANSWERED.caller;

/** What a refusal calls each limit. */
const NAMES: Readonly<Record<keyof typeof QUERY_LIMITS, string>> = {
  depth: 'levels of nested fields',
  selections: 'fields, counted through fragments',
  aliases: 'aliases',
  directives: 'directives',
  rootFields: 'root fields',
  mutationFields: 'mutation fields',
  representations: 'entity representations',
  cost: 'points of cost',
};

/**
 * Refuses operations that ask for more than {@link QUERY_LIMITS}, before they run: one error with the code
 * QUERY_TOO_LARGE, the limit's name and its maximum.
 */
export function queryLimitsPlugin(): ApolloServerPlugin<object> {
  return {
    async requestDidStart() {
      return {
        async didResolveOperation({ schema, document, operation, request, contextValue }) {
          if (operation === undefined) return;
          refuseUnknownRoot(schema, operation);
          const fragments = fragmentsOf(document);
          const { depth, selections, aliases, directives, rootFields } = measureOperation(
            operation,
            fragments,
          );
          // First what bounds the work of counting the rest.
          refuseAbove('selections', selections);
          refuseAbove('depth', depth);
          refuseAbove('aliases', aliases);
          refuseAbove('directives', directives);
          refuseAbove(operation.operation === 'mutation' ? 'mutationFields' : 'rootFields', rootFields);
          const { coerced } = getVariableValues(
            schema,
            operation.variableDefinitions ?? [],
            request.variables ?? {},
            { maxErrors: 1 },
          );
          // Variables that do not fit are refused by the check of variables, and by the executor after it.
          if (coerced === undefined) return;
          const references = countAllRepresentations(schema, operation, fragments, coerced);
          const answered = entitiesAnswered(contextValue);
          refuseAbove(
            'representations',
            references,
            (QUERY_LIMITS.representations / ENTITIES_ANSWERED.caller) * answered,
          );
          refuseAbove(
            'cost',
            costOfOperation(schema, operation, fragments, coerced, answered),
            Math.max(QUERY_LIMITS.cost, Math.min(references, answered) * COST_PER_ENTITY),
          );
        },
      };
    },
  };
}

/** Validation has nothing to compare the fields of such an operation with, and lets it pass. */
function refuseUnknownRoot(schema: GraphQLSchema, { operation }: OperationDefinitionNode): void {
  if (schema.getRootType(operation)) return;
  throw new GraphQLError(`This service has no ${operation}.`, {
    extensions: { code: 'OPERATION_RESOLUTION_FAILURE', http: { status: 400 } },
  });
}

function refuseAbove(
  limit: keyof typeof QUERY_LIMITS,
  found: number,
  maximum: number = QUERY_LIMITS[limit],
): void {
  if (found <= maximum) return;
  throw new GraphQLError(
    `The operation asks for too much: ${found} ${NAMES[limit]}, and ${maximum} are accepted. Ask for less, or in several requests.`,
    { extensions: { code: 'QUERY_TOO_LARGE', limit, maximum, http: { status: 400 } } },
  );
}
