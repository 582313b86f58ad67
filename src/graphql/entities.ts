import { defaultFieldResolver, GraphQLError, type GraphQLFieldResolver, type GraphQLSchema } from 'graphql';
import { z } from 'zod';
import { entityTypes } from '../auth/field-requirements.ts';
import { entitiesAnswered } from '../http/limits.ts';
import { badUserInput } from './connection.ts';

/**
 * Lets each reference of `_entities` stand for itself. What is no reference to an entity of this schema, and what is more
 * than a request is answered, gets an error in its place; the library's own resolver would fail all of them.
 *
 * @param schema one made by `buildSubgraphSchema`; it is changed in place.
 */
export function answerEntitiesOneByOne(schema: GraphQLSchema): void {
  const field = schema.getQueryType()?.getFields()._entities;
  if (field === undefined) return;
  const referenceForm = z.object({ __typename: z.enum(entityTypes(schema).map(({ name }) => name)) });
  const resolve: GraphQLFieldResolver<unknown, object> = field.resolve ?? defaultFieldResolver;
  /** How many references each request has asked for so far: `_entities` may stand in it several times. */
  const asked = new WeakMap<object, number>();

  field.resolve = async (
    source,
    { representations }: { representations: readonly unknown[] },
    context,
    info,
  ) => {
    const before = asked.get(context) ?? 0;
    asked.set(context, before + representations.length);
    const answered = entitiesAnswered(context);
    const problems = representations.map((reference, index) => {
      if (before + index >= answered) return tooMany(answered);
      if (referenceForm.safeParse(reference).success) return null;
      return badUserInput('A reference is an object whose __typename is an entity of this subgraph.');
    });
    const good = representations.filter((_, index) => problems[index] === null);
    const found = (await resolve(source, { representations: good }, context, info)) as unknown[];
    let next = 0;
    return problems.map((problem) => problem ?? found[next++]);
  };
}

function tooMany(answered: number): GraphQLError {
  return new GraphQLError(`One request is answered ${answered} references; ask for this one in another.`, {
    extensions: { code: 'QUERY_TOO_LARGE', limit: 'representations', maximum: answered },
  });
}
