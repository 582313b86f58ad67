// Hive Gateway in front of the subgraphs of a supergraph.
//
//   SUPERGRAPH=supergraph.graphql GATEWAY_SECRET=… node examples/gateways/hive.mjs
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createGatewayRuntime } from '@graphql-hive/gateway-runtime';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const { SUPERGRAPH, GATEWAY_SECRET, AUTH_JWKS_URL, AUTH_ISSUER, AUTH_AUDIENCE, PORT = '4000' } = process.env;

const keys = createRemoteJWKSet(new URL(AUTH_JWKS_URL));
const EVERY_SCOPE = 'state.read state.export state.import state.overwrite state.raw.read state.support'.split(
  ' ',
);

const gateway = createGatewayRuntime({
  supergraph: readFileSync(SUPERGRAPH, 'utf8'),
  logging: 'warn',
  // Files of importStateArchive. Off by itself.
  multipart: true,
  // Cross-site forms can send multipart unasked: the gateway asks for this header as the service does.
  csrfPrevention: { requestHeaders: ['apollo-require-preflight'] },
  // An export that waits answers within 25 seconds; a file takes its time on top.
  upstreamTimeout: 120_000,
  // Messages of subgraphs are written for callers, and masked where they come from.
  maskedErrors: false,
  propagateHeaders: {
    // Made anew for the subgraphs, so that whatever else a client sends stays here, x-gateway-secret before all.
    fromClientToSubgraphs: ({ request, subgraphName }) => ({
      authorization: request.headers.get('authorization') ?? undefined,
      'x-request-id': request.headers.get('x-request-id') ?? undefined,
      ...(subgraphName === 'state-archive' && {
        'x-gateway-secret': GATEWAY_SECRET,
        // The subgraph's own rule against cross-site forms, which has been kept here.
        'apollo-require-preflight': 'true',
      }),
    }),
  },
  // Denies fields here that the subgraph would deny as well, and answers the others.
  genericAuth: {
    mode: 'protect-granular',
    rejectUnauthenticated: false,
    resolveUserFn: async ({ request }) => {
      const token = /^Bearer (.+)$/i.exec(request?.headers.get('authorization') ?? '')?.[1];
      if (token === undefined) return null;
      // Kilolock's own tokens are opaque. Nobody here can tell what they allow: the subgraph decides.
      if (token.split('.').length !== 3) return { scope: EVERY_SCOPE };
      const { payload } = await jwtVerify(token, keys, { issuer: AUTH_ISSUER, audience: AUTH_AUDIENCE });
      return payload;
    },
  },
});

const server = createServer(gateway);
server.listen(Number(PORT), '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}/graphql\n`);
});
