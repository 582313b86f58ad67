import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { ArchiveClient, ArchiveService } from '../../archive-service.ts';
import type { Scope } from '../../documents.ts';
import { configuration } from '../../histories/network.ts';
import { Klc, type Kld } from '../../kilolock.ts';
import type { Database } from '../../postgres.ts';
import type { Stage } from '../../stage.ts';
import type { WorkingDirectory } from '../../working-directory.ts';

/** The state that stands in every environment, with three versions and a tag. */
export const LABEL = 'net';
export const VERSIONS = 3;

/** One environment of one workspace, and somebody who works there. */
export interface Environment {
  /** How people call it. */
  readonly name: string;
  /** The slugs of both, as the control plane names them. */
  readonly workspace: string;
  readonly environment: string;
  readonly scope: Scope;
  /** Kilolock's API token for it. */
  readonly token: string;
  readonly tokenId: string;
  /** Where its states are: the control database, or one of its own. */
  readonly database: Database;
  /** The service as the token sees it. */
  readonly archives: ArchiveClient;
  /** Works on the state {@link LABEL}. */
  readonly work: WorkingDirectory;
  /** The name under which kld stores a label. */
  stored(label: string): string;
}

/** A Kilolock with two workspaces, and three environments in all. */
export interface Setting {
  readonly database: Database;
  readonly kld: Kld;
  readonly klc: Klc;
  readonly service: ArchiveService;
  /** `default` of the workspace acme. */
  readonly acme: Environment;
  /** Another environment of acme, with a database of its own. */
  readonly isolated: Environment;
  /** `default` of another workspace. */
  readonly other: Environment;
}

/** Has the control plane make the workspaces and environments, and Terraform the states. */
export async function setUp(stage: Stage): Promise<Setting> {
  const database = await stage.postgres.create('control');
  const environment = {
    KL_AUTH_MODE: 'database',
    KL_DATA_PLANE_ADMIN_URL: stage.postgres.administration,
    KL_DATA_PLANE_DATABASE_URL: database.connectionString,
  };
  const kld = await stage.startKld(database, environment);
  const klc = stage.own(
    await Klc.start({
      program: stage.program('klc'),
      processes: stage.processes,
      directory: stage.directory,
      connectionString: database.connectionString,
      environment,
    }),
  );
  // Databases are named after the slugs, and others may use this server.
  const [acme, other] = [`acme${stage.postgres.suffix}`, `other${stage.postgres.suffix}`];
  for (const slug of [acme, other]) {
    strictEqual((await klc.call('POST', '/tenants', { slug, name: slug })).status, 201);
  }
  const provisioned = await klc.call('POST', `/tenants/${acme}/environments`, {
    slug: 'isolated',
    provision: true,
  });
  strictEqual(provisioned.status, 201, JSON.stringify(provisioned.body));

  const service = await stage.startService('workspaces', database.connectionString, {
    ALLOW_TOKEN_EXPORT: 'on',
    ALLOW_TOKEN_IMPORT: 'on',
  });
  const shared = { stage, database, kld, klc, service };
  return {
    database,
    kld,
    klc,
    service,
    acme: await settle(shared, { name: 'acme/default', workspace: acme, environment: 'default' }),
    isolated: await settle(shared, { name: 'acme/isolated', workspace: acme, environment: 'isolated' }),
    other: await settle(shared, { name: 'other/default', workspace: other, environment: 'default' }),
  };
}

interface Shared {
  readonly stage: Stage;
  readonly database: Database;
  readonly kld: Kld;
  readonly klc: Klc;
  readonly service: ArchiveService;
}

/** Makes a token for an environment, and the state in it. */
async function settle(
  { stage, database, kld, klc, service }: Shared,
  names: Pick<Environment, 'name' | 'workspace' | 'environment'>,
): Promise<Environment> {
  const [row] = await database.rows<{
    id: string;
    workspaceId: string;
    environmentId: string;
    ownDatabase: string | null;
  }>(
    `select environment.id, workspace_id as "workspaceId", env_public_id as "environmentId",
       case when database_dsn <> '' then database_name end as "ownDatabase"
     from environments environment join tenants on tenants.id = tenant_id
     where tenants.slug = $1 and environment.slug = $2`,
    [names.workspace, names.environment],
  );
  if (row === undefined) throw new Error(`klc has not made ${names.name}.`);
  const issued = await klc.call('POST', `/tenants/${names.workspace}/tokens`, {
    environment: names.environment,
    name: 'ci',
  });
  strictEqual(issued.status, 201, JSON.stringify(issued.body));
  const { token_secret: token } = issued.body as { token_secret: string };
  const tokenId = await database.value('select id from api_tokens where environment_id = $1', [row.id]);

  const { workspaceId, environmentId, ownDatabase } = row;
  const stored = (label: string) => `${workspaceId}/${environmentId}/${label}`;
  const work = await stage.workingDirectory(names.name.replace('/', '-'), {
    kld,
    state: stored(LABEL),
    credential: { user: workspaceId, password: token },
  });
  await work.write('main.tf', await configuration('workspace.tf'));
  for (let version = 1; version <= VERSIONS; version += 1) {
    await work.write('main.auto.tfvars.json', JSON.stringify({ text: `${names.name} ${version}` }));
    if (version === 1) await work.init();
    await work.apply();
  }
  await work.kl(['tag', 'set', '--description', names.name, work.state, 'v2', '2']);
  return {
    ...names,
    scope: { workspaceId, environmentId },
    token,
    tokenId: tokenId ?? '',
    database: ownDatabase === null ? database : stage.postgres.adopt(ownDatabase),
    archives: service.as(token),
    work,
    stored,
  };
}

/** Asks the control plane for something that it has to do. */
export async function ordered(klc: Klc, path: string, body: unknown): Promise<void> {
  const answer = await klc.call('POST', path, body);
  deepStrictEqual([answer.status, answer.body], [200, { ok: true }]);
}
