// @apollo/gateway in front of the subgraphs of a supergraph that was composed without @requiresScopes (compose.mjs).
//
//   SUPERGRAPH=supergraph.graphql GATEWAY_SECRET=… node examples/gateways/apollo.mjs
import { readFileSync } from 'node:fs';
import { ApolloGateway, RemoteGraphQLDataSource } from '@apollo/gateway';
import { ApolloServer } from '@apollo/server';
import { startStandaloneServer } from '@apollo/server/standalone';

const { SUPERGRAPH, GATEWAY_SECRET, PORT = '4000' } = process.env;

class Subgraph extends RemoteGraphQLDataSource {
  // Headers are made anew: what a client sends reaches a subgraph only if it is named here.
  willSendRequest({ request, context }) {
    const { authorization, requestId } = context;
    if (authorization !== undefined) request.http.headers.set('authorization', authorization);
    if (requestId !== undefined) request.http.headers.set('x-request-id', requestId);
    if (this.name === 'state-archive') request.http.headers.set('x-gateway-secret', GATEWAY_SECRET);
  }
}

const server = new ApolloServer({
  gateway: new ApolloGateway({
    supergraphSdl: readFileSync(SUPERGRAPH, 'utf8'),
    buildService: ({ name, url }) => new Subgraph({ name, url }),
  }),
  // Codes and messages of subgraphs are written for callers; stack traces of the gateway are not.
  includeStacktraceInErrorResponses: false,
  // It has no way to carry a file: stageStateArchiveUpload says where to send it, importStateArchive takes its id.
});

const { url } = await startStandaloneServer(server, {
  listen: { host: '127.0.0.1', port: Number(PORT) },
  context: async ({ req }) => ({
    authorization: req.headers.authorization,
    requestId: req.headers['x-request-id'],
  }),
});
process.stdout.write(`${url}graphql\n`);
