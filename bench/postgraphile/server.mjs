import { once } from 'node:events';
import { createServer } from 'node:http';
import { postgraphile } from 'postgraphile';
import { makePgService } from 'postgraphile/adaptors/pg';
import { grafserv } from 'postgraphile/grafserv/node';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';

/**
 * @file A process of its own: PostGraphile, as it comes, on the tables of a database. Prints the address of its endpoint.
 * JavaScript, because its types change those of the package graphql for everybody who is checked with them.
 */

const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [makePgService({ connectionString: process.env.DATABASE_URL ?? '', schemas: ['public'] })],
  grafserv: { graphqlPath: '/graphql', graphiql: false },
});
const server = createServer();
await instance.createServ(grafserv).addTo(server);
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const address = server.address();
process.stdout.write(`http://127.0.0.1:${address.port}/graphql\n`);
