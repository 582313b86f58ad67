import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { DocumentNode } from 'graphql';
// @ts-expect-error: a program for people to read and run, in plain JavaScript
import * as example from '../../../examples/gateways/compose.mjs';

/** The subgraphs of the example. */
export type Names = 'state-archive' | 'inventory' | 'deployments';

interface Example {
  schemaOf(name: Names): DocumentNode;
  withoutScopes(schema: DocumentNode): DocumentNode;
  composeExample(options?: { addresses?: Readonly<Record<Names, string>>; scopes?: boolean }): {
    readonly supergraph: string;
    readonly hints: readonly { readonly message: string }[];
  };
}

/** What `examples/gateways/compose.mjs` offers. */
export const { schemaOf, withoutScopes, composeExample }: Example = example;

/** Where a server listens, such as `http://127.0.0.1:4001`. */
export function addressOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
