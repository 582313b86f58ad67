import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { json } from 'node:stream/consumers';
import { buildSubgraphSchema } from '@apollo/subgraph';
import { type GraphQLSchema, graphql } from 'graphql';
import { addressOf, type Names, schemaOf } from './examples.ts';

/** A deployment of the platform, and the state it is of. */
export interface Deployment {
  readonly service: string;
  readonly stateArchive: {
    readonly workspaceId: string;
    readonly environmentId: string;
    readonly name: string;
  };
}

/** The other subgraphs of a platform, listening; what they answer can be set. */
export interface Platform {
  readonly addresses: Readonly<Record<Exclude<Names, 'state-archive'>, string>>;
  /** The ids of the states that the inventory lists. */
  states: readonly string[];
  deployments: readonly Deployment[];
  /** The headers that each request to a subgraph came with. */
  readonly received: Record<string, unknown>[];
  stop(): Promise<void>;
}

/** Starts the subgraphs of `examples/gateways/platform`. */
export async function startPlatform(): Promise<Platform> {
  const received: Platform['received'] = [];
  const inventory = buildSubgraphSchema([
    {
      typeDefs: schemaOf('inventory'),
      resolvers: {
        Query: {
          states: (_root: unknown, { first }: { first: number }) =>
            platform.states.slice(0, first).map((id) => ({ id })),
        },
        State: {
          __resolveReference: (state: object) => state,
          costCentre: ({ id }: { id: string }) => `centre of ${id}`,
        },
      },
    },
  ]);
  const deployments = buildSubgraphSchema([
    {
      typeDefs: schemaOf('deployments'),
      resolvers: {
        Query: {
          deployments: () => ({
            nodes: platform.deployments,
            pageInfo: { hasNextPage: false, hasPreviousPage: false },
          }),
        },
      },
    },
  ]);
  const servers = await Promise.all([inventory, deployments].map((schema) => serve(schema, received)));
  const [first, second] = servers.map(addressOf);
  const platform: Platform = {
    addresses: { inventory: `${first}/graphql`, deployments: `${second}/graphql` },
    states: [],
    deployments: [],
    received,
    async stop() {
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
  return platform;
}

/** Serves a subgraph's schema, as plainly as can be. The headers of each request are added to `received`. */
export async function serve(schema: GraphQLSchema, received: Platform['received']): Promise<Server> {
  const server = createServer(async (request, response) => {
    received.push({ ...request.headers });
    const { query, variables = {} } = (await json(request)) as {
      query: string;
      variables?: Record<string, unknown>;
    };
    const answer = await graphql({ schema, source: query, variableValues: variables });
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}
