// Composes the supergraph of a platform out of this project's schema.graphql and the subgraphs in platform/.
//
//   node examples/gateways/compose.mjs > supergraph.graphql
//   node examples/gateways/compose.mjs --without-scopes > supergraph.graphql   # for @apollo/gateway
import { readFileSync } from 'node:fs';
import { composeServices } from '@apollo/composition';
import { parse, visit } from 'graphql';

const FILES = {
  'state-archive': '../../schema.graphql',
  inventory: 'platform/inventory.graphql',
  deployments: 'platform/deployments.graphql',
};

/** Where each subgraph is in the example. */
export const ADDRESSES = {
  'state-archive': 'http://127.0.0.1:4001/graphql',
  inventory: 'http://127.0.0.1:4002/graphql',
  deployments: 'http://127.0.0.1:4003/graphql',
};

/** The schema of a subgraph of the example. */
export function schemaOf(name) {
  return parse(readFileSync(new URL(FILES[name], import.meta.url), 'utf8'));
}

/**
 * A schema without `@requiresScopes` and `@authenticated`: @apollo/gateway refuses to start with a supergraph that has them, because
 * it would not enforce them. What it would not enforce, the subgraph does.
 */
export function withoutScopes(schema) {
  const refused = ['requiresScopes', 'authenticated'];
  return visit(schema, {
    Directive: ({ name }) => (refused.includes(name.value) ? null : undefined),
    StringValue: ({ value }) => (refused.some((name) => value === `@${name}`) ? null : undefined),
  });
}

/** Composes the subgraphs at these addresses. Throws when they do not fit together. */
export function composeExample({ addresses = ADDRESSES, scopes = true } = {}) {
  const {
    errors = [],
    hints = [],
    supergraphSdl,
  } = composeServices(
    Object.entries(addresses).map(([name, url]) => {
      const schema = schemaOf(name);
      return { name, url, typeDefs: scopes ? schema : withoutScopes(schema) };
    }),
  );
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join('\n'));
  return { supergraph: supergraphSdl, hints };
}

if (import.meta.main) {
  process.stdout.write(composeExample({ scopes: !process.argv.includes('--without-scopes') }).supergraph);
}
