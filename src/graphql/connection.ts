import { type ASTNode, GraphQLError } from 'graphql';
import type { PageInfo } from './schema-types.ts';

/** A page of a list, by the GraphQL Cursor Connections Specification. */
export interface Connection<Node> {
  readonly edges: { readonly cursor: string; readonly node: Node }[];
  readonly nodes: Node[];
  readonly pageInfo: PageInfo;
}

/** What a connection field is asked with. */
export interface PageArguments {
  readonly first: number;
  readonly after?: string | null | undefined;
}

/**
 * The number of items to read for a page: one more than asked for, which tells whether another page follows.
 *
 * @throws GraphQLError BAD_USER_INPUT when `first` is not 1 to `maximum`.
 */
export function pageLimit({ first }: PageArguments, maximum: number): number {
  if (first < 1 || first > maximum) {
    throw badUserInput(`first is 1 to ${maximum}.`);
  }
  return first + 1;
}

/** The page made of `rows`, which were read with {@link pageLimit}; `keyOf` gives the place of a row in the list. */
export function connectionOf<Node>(
  rows: readonly Node[],
  page: PageArguments,
  keyOf: (node: Node) => string,
): Connection<Node> {
  const nodes = rows.slice(0, page.first);
  const edges = nodes.map((node) => ({ cursor: Buffer.from(keyOf(node)).toString('base64url'), node }));
  return {
    edges,
    nodes,
    pageInfo: {
      hasNextPage: rows.length > nodes.length,
      hasPreviousPage: typeof page.after === 'string',
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

/**
 * The key in a cursor, or null without one.
 *
 * @param read makes a key of a text; null when the text is no key of this list.
 * @throws GraphQLError BAD_USER_INPUT when the cursor is none of this list's.
 */
export function keyOfCursor<Key>({ after }: PageArguments, read: (text: string) => Key | null): Key | null {
  if (after === null || after === undefined) return null;
  const text = Buffer.from(after, 'base64url').toString();
  // Decoding passes over what it does not know; only what encodes to the same text again was made here.
  const key = Buffer.from(text).toString('base64url') === after ? read(text) : null;
  if (key === null) throw badUserInput('after is not a cursor of this list.');
  return key;
}

/**
 * The refusal of an argument; the message names it and what is accepted, and never repeats its value.
 *
 * @param node where the value stands in the document, when it stands there.
 */
export function badUserInput(message: string, node: ASTNode | null = null): GraphQLError {
  return new GraphQLError(message, { nodes: node, extensions: { code: 'BAD_USER_INPUT' } });
}
