// A Hive Gateway as docs/gateways.md sets one up: a process of its own, that ends with its standard input.
// In: { supergraph, secret } as JSON on one line. Out: its address, once it answers.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { createGatewayRuntime } from '@graphql-hive/gateway-runtime';

const lines = createInterface({ input: process.stdin });
lines.once('close', () => process.exit());
lines.once('line', (line) => {
  const { supergraph, secret } = JSON.parse(line);
  const gateway = createGatewayRuntime({
    supergraph,
    logging: false,
    multipart: true,
    propagateHeaders: {
      fromClientToSubgraphs: ({ request }) => ({
        authorization: request.headers.get('authorization') ?? '',
        'x-gateway-secret': secret,
        'apollo-require-preflight': 'true',
      }),
    },
  });
  const server = createServer(gateway);
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
  });
});
