import type { ApolloGraphQLObjectTypeExtensions, GraphQLReferenceResolver } from '@apollo/subgraph';
import {
  defaultFieldResolver,
  GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  isAbstractType,
} from 'graphql';
import { directiveNamingProblems } from './federation-link.ts';
import {
  entityTypes,
  fieldRequirements,
  objectTypes,
  type Requirement,
  SchemaError,
  typeRequirement,
} from './field-requirements.ts';
import type { Principal } from './principal.ts';

/** What enforcement needs of the GraphQL context. */
interface AuthorizationContext {
  /** Who is calling; null when no credential was given. */
  readonly principal: Principal | null;
  /** Whether the request proved that it came through the gateway (`createSecretProof`); not when absent. */
  readonly fromGateway?: boolean;
}

/** What federation itself asks, and only a gateway has a use for. */
const GATEWAY_FIELDS = ['_service', '_entities'];

/**
 * Enforces `@authenticated` and `@requiresScopes` of a schema made by `buildSubgraphSchema`, whatever path a query
 * takes: on every field of every object type, and on every reference resolver. A denial comes before the resolver it guards, so that it costs no work and tells nothing.
 * A caller without a credential gets UNAUTHENTICATED, one without the scopes FORBIDDEN.
 *
 * The schema is guarded in place and returned: there is no unguarded one left to serve by mistake.
 *
 * @param options.publicCoordinates the only fields that may demand nothing: `Type.field`, or `Type` for all of its
 *   fields. `Query._entities` belongs among them; what it resolves is guarded item by item.
 * @param options.gatewayProofRequired whether `_service` and `_entities` are answered only where `fromGateway` is true;
 *   others get FORBIDDEN. It adds to what the directives demand and replaces nothing of it. False when absent.
 * @throws SchemaError when a field outside that list demands nothing, a public coordinate is not in the
 *   schema, a directive is renamed, not imported or not enforced here, an entity has no reference resolver (the library would
 *   then echo what the caller sent), or there is an interface, a union or a subscription: none of them is guarded here.
 */
export function enforceAuthorization(
  schema: GraphQLSchema,
  options: { readonly publicCoordinates: readonly string[]; readonly gatewayProofRequired?: boolean },
): GraphQLSchema {
  const requirements = fieldRequirements(schema);
  const problems = [
    ...directiveNamingProblems(schema),
    ...unguardedFields(requirements, options.publicCoordinates),
    ...unresolvedEntities(schema),
    ...unguardedKinds(schema),
  ];
  if (problems.length > 0) throw new SchemaError(problems);

  guardFields(schema, requirements);
  guardReferences(schema);
  if (options.gatewayProofRequired) guardGatewayFields(schema);
  return schema;
}

function unguardedFields(
  requirements: ReadonlyMap<string, Requirement>,
  publicCoordinates: readonly string[],
): string[] {
  const isOf = (coordinate: string, each: string) => coordinate === each || coordinate.startsWith(`${each}.`);
  const unguarded = [...requirements]
    .filter(([, requirement]) => requirement === null)
    .filter(([coordinate]) => !publicCoordinates.some((each) => isOf(coordinate, each)))
    .map(([coordinate]) => `${coordinate}: demands nothing and is not among the public coordinates`);
  const unused = publicCoordinates
    .filter((each) => ![...requirements.keys()].some((coordinate) => isOf(coordinate, each)))
    .map((coordinate) => `${coordinate}: is public and not in the schema`);
  return [...unguarded, ...unused];
}

function unresolvedEntities(schema: GraphQLSchema): string[] {
  return entityTypes(schema)
    .filter((type) => referenceResolver(type) === undefined)
    .map((type) => `${type.name}: is an entity without a reference resolver`);
}

/** What an interface or a union turns out to be, and a subscription's source, would need guards of their own. */
function unguardedKinds(schema: GraphQLSchema): string[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isAbstractType(type) || type === schema.getSubscriptionType())
    .filter(({ name }) => name !== '_Entity')
    .map(({ name }) => `${name}: interfaces, unions and subscriptions are not guarded by this service`);
}

function guardFields(schema: GraphQLSchema, requirements: ReadonlyMap<string, Requirement>): void {
  for (const type of objectTypes(schema)) {
    for (const field of Object.values(type.getFields())) {
      const requirement = requirements.get(`${type.name}.${field.name}`) ?? null;
      if (requirement !== null) guard(field, (context) => demand(requirement, context));
    }
  }
}

function guard(
  field: GraphQLField<unknown, AuthorizationContext>,
  check: (context: AuthorizationContext) => void,
) {
  const { resolve = defaultFieldResolver } = field;
  field.resolve = (source, args, context, info) => {
    check(context);
    return resolve(source, args, context, info);
  };
}

function guardReferences(schema: GraphQLSchema): void {
  for (const type of entityTypes(schema)) {
    const resolve = referenceResolver(type);
    if (resolve === undefined) continue;
    const requirement = typeRequirement(type);
    // Asynchronous, because a synchronous throw would fail every item of `_entities` and not this one alone.
    const guarded: GraphQLReferenceResolver<AuthorizationContext> = async (reference, context, info) => {
      demand(requirement, context);
      return resolve(reference, context, info);
    };
    const { apollo, ...others } = apolloExtensions(type);
    type.extensions = {
      ...others,
      apollo: { ...apollo, subgraph: { ...apollo?.subgraph, resolveReference: guarded } },
    };
  }
}

function guardGatewayFields(schema: GraphQLSchema): void {
  const fields = schema.getQueryType()?.getFields() ?? {};
  for (const field of GATEWAY_FIELDS.flatMap((name) => fields[name] ?? [])) {
    guard(field, ({ fromGateway }) => {
      // Not `!fromGateway`: nothing but a proof that was checked may count as one.
      if (fromGateway === true) return;
      throw new GraphQLError('Only the gateway may ask this.', { extensions: { code: 'FORBIDDEN' } });
    });
  }
}

function referenceResolver(
  type: GraphQLObjectType,
): GraphQLReferenceResolver<AuthorizationContext> | undefined {
  return apolloExtensions(type).apollo?.subgraph?.resolveReference;
}

/** Where `buildSubgraphSchema` keeps the reference resolver of a type. */
function apolloExtensions(
  type: GraphQLObjectType,
): ApolloGraphQLObjectTypeExtensions<unknown, AuthorizationContext> {
  return type.extensions;
}

function demand(requirement: Requirement, { principal }: AuthorizationContext): void {
  if (requirement === null) return;
  // Not `principal === null`: a context built without a principal must not count as somebody.
  if (!principal) {
    throw new GraphQLError('Authentication is required.', { extensions: { code: 'UNAUTHENTICATED' } });
  }
  if (requirement.some((set) => set.every((scope) => principal.scopes.has(scope)))) return;
  throw new GraphQLError('Not permitted.', {
    extensions: { code: 'FORBIDDEN', requiredScopes: requirement },
  });
}
