import { type ASTNode, GraphQLError } from 'graphql';
import type { PageInfo } from './schema-types.ts';

/** A page of a list, by the GraphQL Cursor Connections Specification. */
interface Connection<Node> {
  readonly edges: { readonly cursor: string; readonly node: Node }[];
  readonly nodes: Node[];
  readonly pageInfo: PageInfo;
}

/** What a connection field is asked with. */
interface PageArguments {
  readonly first: number;
  readonly after?: string | null | undefined;
}

/** Where a page begins, and how many items are to be read for it. */
export interface Position<Key> {
  /** The page begins behind the item with this key; null: with the first there is. */
  readonly after: Key | null;
  readonly limit: number;
}

/** A list that is given out in pages. */
export interface PagedList<Node, Key> {
  /** The most items of a page. */
  readonly maximum: number;
  /** The place of an item in the list, as text. */
  keyOf(node: Node): string;
  /** The place that a text of `keyOf` stands for; null when the text is none. */
  readKey(text: string): Key | null;
}

/**
 * A page of a list.
 *
 * @param read reads the items from a position on, one more than asked for, which tells whether another page follows.
 * @throws GraphQLError BAD_USER_INPUT when `first` is not 1 to the list's maximum, or `after` is none of its cursors.
 */
export async function pageOf<Node, Key>(
  list: PagedList<Node, Key>,
  { first, after }: PageArguments,
  read: (position: Position<Key>) => Promise<readonly Node[]>,
): Promise<Connection<Node>> {
  if (first < 1 || first > list.maximum) throw badUserInput(`first is 1 to ${list.maximum}.`);
  const isFirstPage = after === null || after === undefined;
  const rows = await read({ after: isFirstPage ? null : keyOfCursor(list, after), limit: first + 1 });
  const edges = rows.slice(0, first).map((node) => ({
    cursor: Buffer.from(list.keyOf(node)).toString('base64url'),
    node,
  }));
  return {
    edges,
    nodes: edges.map(({ node }) => node),
    pageInfo: {
      hasNextPage: rows.length > first,
      hasPreviousPage: !isFirstPage,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

function keyOfCursor<Key>({ readKey }: PagedList<never, Key>, cursor: string): Key {
  const text = Buffer.from(cursor, 'base64url').toString();
  // Decoding passes over what it does not know; only what encodes to the same text again was made here.
  const key = Buffer.from(text).toString('base64url') === cursor ? readKey(text) : null;
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
