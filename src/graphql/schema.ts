import { readFileSync } from 'node:fs';
import { buildSubgraphSchema, type GraphQLResolverMap } from '@apollo/subgraph';
import { type DocumentNode, type GraphQLSchema, parse } from 'graphql';
import { enforceAuthorization } from '../auth/directives.ts';
import { PUBLIC_COORDINATES } from '../auth/public-coordinates.ts';
import { assertResolversMatchSchema } from '../auth/resolver-map.ts';
import { answerEntitiesOneByOne } from './entities.ts';
import { Mutation } from './resolvers/mutation.ts';
import { Query } from './resolvers/query.ts';
import { State, StateArchive, StateArchiveStatus, StateArchiveTag } from './resolvers/state-archive.ts';
import {
  StateArchiveFile,
  StateArchiveImportReport,
  StateArchiveOperation,
} from './resolvers/state-archive-operation.ts';
import { StateArchiveVersion } from './resolvers/state-archive-version.ts';
import { scalars } from './scalars.ts';
import type { Resolvers } from './schema-types.ts';

const SCHEMA_FILE = new URL('../../schema.graphql', import.meta.url);

const resolvers: Resolvers = {
  ...scalars,
  Query,
  Mutation,
  State,
  StateArchive,
  StateArchiveFile,
  StateArchiveImportReport,
  StateArchiveOperation,
  StateArchiveStatus,
  StateArchiveTag,
  StateArchiveVersion,
};

/**
 * The subgraph's schema, made of `schema.graphql` and the resolvers, with every field guarded as the SDL says.
 *
 * @param options.gatewayProofRequired whether `_service` and `_entities` answer the gateway alone.
 * @throws SchemaError when a field has no guard, a directive is not imported by its own name, or a resolver belongs to no
 *   field.
 */
export function createSchema(options: { readonly gatewayProofRequired: boolean }): GraphQLSchema {
  const typeDefs = parse(readFileSync(SCHEMA_FILE, 'utf8'));
  return createSubgraph(typeDefs, { ...resolvers }, { publicCoordinates: PUBLIC_COORDINATES, ...options });
}

/**
 * A subgraph's schema, guarded as its SDL says.
 *
 * @param options.publicCoordinates the types and fields that need no guard.
 * @throws SchemaError as {@link createSchema} does.
 */
export function createSubgraph(
  typeDefs: DocumentNode,
  // biome-ignore lint/suspicious/noExplicitAny: the library leaves the contexts of resolvers open, too
  resolvers: GraphQLResolverMap<any>,
  options: Parameters<typeof enforceAuthorization>[1],
): GraphQLSchema {
  const schema = buildSubgraphSchema([{ typeDefs, resolvers }]);
  assertResolversMatchSchema(schema, resolvers);
  answerEntitiesOneByOne(schema);
  return enforceAuthorization(schema, options);
}
