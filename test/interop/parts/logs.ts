import type { Part } from '../part.ts';
import { checkServiceLogs } from '../service-logs.ts';

/** Stands in outputs of the states, and has no place in a log. */
const SECRET = 'hunter2';

export const logs: Part = {
  name: 'logs',
  title: 'What the services of A and B have logged in all this',
  needs: [],
  after: [],
  async run(stage) {
    const [a, b] = await stage.backends();
    await checkServiceLogs(
      stage.report,
      'the services of A and B',
      [a.service, b.service],
      [SECRET, a.database.connectionString, b.database.connectionString],
    );
  },
};
