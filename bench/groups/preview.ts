import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BenchDatabase } from '../databases.ts';
import type { Group } from '../group.ts';
import { usualHistory } from '../history/shape.ts';
import { verdict } from '../report.ts';
import { GraphqlClient } from '../service/graphql-client.ts';
import { preview as askForPreview } from '../service/jobs.ts';
import { startBenchService } from '../service/service.ts';
import { median, percentile } from '../statistics.ts';

const GOAL = 1.5;
const SELF_HOSTED_TENANT = '00000000-0000-0000-0000-000000000000';

/** What a preview tells, and what its digest is made of, in the one statement that a person would write for it. */
const STATEMENT = `
  select s.lineage, s.current_version_id, current.serial,
    (select json_agg(json_build_array(v.serial::text, v.terraform_version, v.source, v.created_at, v.created_by,
         encode(d.sha256, 'hex'), d.byte_length) order by v.serial)
       from public.state_versions v join state_archive.version_digest d on d.state_version_id = v.id
       where v.state_id = s.id) as versions,
    (select json_agg(json_build_array(t.tag, v.serial::text, t.description, t.actor, t.created_at, t.updated_at) order by t.tag)
       from public.state_version_tags t join public.state_versions v on v.id = t.state_version_id
       where t.state_id = s.id) as tags,
    (select count(*) from public.events e where e.state_id = s.id and e.kind !~ '^(lock_|state_export)') as events,
    (select count(*) from public.resources r where r.state_id = s.id) as spans
  from public.states s join public.state_versions current on current.id = s.current_version_id
  where s.tenant_id = $1 and s.name = $2`;

/** The same of PostGraphile, which knows no digests. */
const POSTGRAPHILE_QUERY = `query ($tenantId: UUID!, $name: String!) {
  stateByTenantIdAndName(tenantId: $tenantId, name: $name) {
    lineage
    stateVersionByCurrentVersionId { rowId serial }
    stateVersionsByStateId(orderBy: SERIAL_ASC) {
      nodes { serial terraformVersion source createdAt createdBy }
    }
    stateVersionTagsByStateId {
      nodes { tag description actor createdAt updatedAt stateVersionByStateVersionId { serial } }
    }
    eventsByStateId { totalCount }
    resourcesByStateId { totalCount }
  }
}`;

/** One way to learn what a preview tells, and how long it took each time, in milliseconds. */
interface Way {
  readonly title: string;
  ask(): Promise<unknown>;
  readonly latencies: number[];
}

/** What needs no database: what HTTP, the token and GraphQL take by themselves. */
const NOTHING_QUERY = '{ __typename }';

/** How long a preview takes whose digests are on record. */
export const preview: Group = {
  name: 'preview',
  minutes: { full: 1, quick: 1 },
  async run({ histories, quick, tell }) {
    const shape = usualHistory(quick ? 40 : 200);
    const rounds = quick ? 3 : 10;
    const asked = quick ? 50 : 100;
    const database = await histories.copy(shape);
    const service = await startBenchService(database);
    const postgraphile = await startPostgraphile(database);
    await askForPreview(service, shape.name);
    const rows = await database.connected(async (client) => {
      const variables = { tenantId: SELF_HOSTED_TENANT, name: shape.name };
      const statement = way('the statement through `pg`', () =>
        client.query(STATEMENT, [SELF_HOSTED_TENANT, shape.name]),
      );
      const prepared = way('the same, prepared', () =>
        client.query({ name: 'by hand', text: STATEMENT, values: [SELF_HOSTED_TENANT, shape.name] }),
      );
      const ours = way('preview, warm', () => askForPreview(service, shape.name));
      const nothing = way('a question of `__typename`, which needs no database', () =>
        service.client.run(NOTHING_QUERY, {}),
      );
      const theirs = way('PostGraphile 5 on the same tables', () =>
        postgraphile.client.run(POSTGRAPHILE_QUERY, variables),
      );
      const ways = [statement, prepared, ours, nothing, theirs];
      for (let round = 0; round <= rounds; round += 1) {
        tell(`round ${round} of ${rounds}`);
        for (const each of ways) await askManyTimes(each, asked, round === 0);
      }
      return ways.map((each) => rowOf(each, statement, each === ours));
    });
    await postgraphile.stop();
    await service.stop();
    await database.drop();
    return [
      {
        title: `Preview of ${shape.versions} versions`,
        head: ['work', 'median', 'p99', 'beside', 'goal', ''],
        rows,
        notes: [`One at a time, ${rounds * asked} of each, in turns of ${asked}.`],
      },
    ];
  },
};

function way(title: string, ask: () => Promise<unknown>): Way {
  return { title, ask, latencies: [] };
}

async function askManyTimes({ ask, latencies }: Way, times: number, isWarmingUp: boolean): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    const began = performance.now();
    await ask();
    if (!isWarmingUp) latencies.push(performance.now() - began);
  }
}

function rowOf({ title, latencies }: Way, statement: Way, isOurs: boolean): string[] {
  const ratio = median(latencies) / median(statement.latencies);
  return [
    title,
    `${median(latencies).toFixed(2)} ms`,
    `${percentile(latencies, 0.99).toFixed(2)} ms`,
    latencies === statement.latencies ? '' : `${ratio.toFixed(2)} × the statement`,
    isOurs ? `≤ ${GOAL} ×` : '',
    isOurs ? verdict(ratio <= GOAL) : '',
  ];
}

interface Postgraphile {
  readonly client: GraphqlClient;
  stop(): Promise<void>;
}

async function startPostgraphile({ connectionString }: BenchDatabase): Promise<Postgraphile> {
  const directory = fileURLToPath(new URL('../postgraphile/', import.meta.url));
  await installPostgraphile(directory);
  const child = spawn(process.execPath, [join(directory, 'server.mjs')], {
    env: { PATH: process.env.PATH, NODE_ENV: 'production', DATABASE_URL: connectionString },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const killAtExit = () => child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const ended = once(child, 'close').then(() => process.off('exit', killAtExit));
  const endpoint = await Promise.race([
    once(child.stdout, 'data').then(([text]) => String(text).trim()),
    ended.then(() => {
      throw new Error('PostGraphile ended before it listened.');
    }),
  ]);
  return {
    client: new GraphqlClient(endpoint, ''),
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Brings PostGraphile the first time it is wanted: a package of its own, so that nobody else has to install it. */
async function installPostgraphile(directory: string): Promise<void> {
  if (existsSync(join(directory, 'node_modules'))) return;
  const npm = spawn('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(npm, 'close');
  if (code !== 0) throw new Error(`PostGraphile cannot be installed: npm ci ended with ${code}.`);
}
