import { deepStrictEqual, match, rejects, strictEqual } from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { ArchiveService } from '../../archive-service.ts';
import { LIST } from '../../documents.ts';
import { send } from '../../http.ts';
import type { Stage } from '../../stage.ts';
import { LABEL, ordered, type Setting } from './setting.ts';

/** Kilolock's limits, revocations, roles and personal tokens count here as they count there. */
export async function checkCredentials(stage: Stage, setting: Setting): Promise<ArchiveService> {
  await checkQuota(stage, setting);
  await checkRevocation(stage, setting);
  const { database } = setting;
  const service = await stage.startService('owners', database.connectionString, {
    ALLOW_OWNER_EXPORT: 'on',
  });
  await checkRoles(stage, setting, service);
  await checkPersonalToken(stage, setting, service);
  return service;
}

/** The state has three managed instances. A limit of one is soft, and hard at two. */
async function checkQuota({ report }: Stage, { database, kld, acme, other }: Setting): Promise<void> {
  const limit = (count: number) =>
    database.rows('update tenants set max_state_resources = $1 where slug = $2', [count, other.workspace]);
  const { bytes } = await acme.archives.export(LABEL);
  await limit(1);
  await report.check('a restore beyond the quota is refused', async () =>
    deepStrictEqual((await other.archives.import(bytes, { name: 'quota', allowSharedLineage: true })).codes, [
      'QUOTA_EXCEEDED',
    ]),
  );
  await report.check('as kld refuses to write the same document', async () => {
    const document = await kld.document(acme.stored(LABEL), { authorization: `Bearer ${acme.token}` });
    const { status, body } = await send('POST', kld.stateUrl(other.stored('quota')), {
      body: document,
      headers: { authorization: `Bearer ${other.token}` },
    });
    strictEqual(status, 403);
    return JSON.stringify(body);
  });
  await limit(0);
}

async function checkRevocation({ report }: Stage, { klc, acme, other }: Setting): Promise<void> {
  await report.check('a token that klc suspends is refused at once', async () => {
    await ordered(klc, '/tokens/lifecycle', {
      token_id: acme.tokenId,
      status: 'suspended',
      reason: 'because',
    });
    deepStrictEqual((await acme.archives.ask(LIST)).codes, ['UNAUTHENTICATED']);
  });
  await report.check('so is every token of a workspace that klc suspends', async () => {
    await ordered(klc, '/tenants/lifecycle', {
      slug: other.workspace,
      status: 'suspended',
      actor: 'operator',
      reason: 'because',
    });
    deepStrictEqual((await other.archives.ask(LIST)).codes, ['UNAUTHENTICATED']);
  });
}

async function checkRoles(
  { report }: Stage,
  { database, isolated }: Setting,
  service: ArchiveService,
): Promise<void> {
  const archives = service.as(isolated.token);
  await report.check('without ALLOW_TOKEN_EXPORT an API token cannot export', () =>
    rejects(archives.export(LABEL), /FORBIDDEN/),
  );
  await report.check('with the role that docs/environments.md gives it, it can', async () => {
    const page = await readFile(new URL('../../../../docs/environments.md', import.meta.url), 'utf8');
    const [, statements] = /```sql\n([^`]*)```/.exec(page) ?? [];
    match(statements ?? '', /<the token''s id>.*acme\/prod/);
    await database.script(
      (statements ?? '')
        .replace("<the token''s id>", isolated.tokenId)
        .replace('acme/prod', `${isolated.workspace}/${isolated.environment}`),
    );
    await archives.export(LABEL);
  });
}

async function checkPersonalToken(
  { report }: Stage,
  { database, kld, acme, isolated }: Setting,
  service: ArchiveService,
): Promise<void> {
  const token = `klp_${'A'.repeat(43)}`;
  const account = await database.value(
    `insert into portal_accounts
       (email, company, plan, password_salt, password_hash, password_login_enabled, oidc_provider, auth_source)
     values ('ann@example.com', 'c', 'starter', '', 'x', true, '', 'password') returning id`,
  );
  await database.rows(
    `insert into portal_personal_access_tokens (account_id, token_hash, token_prefix) values ($1, $2, 'klp_AAAA')`,
    [account, createHash('sha256').update(token).digest()],
  );
  await database.rows(
    `insert into tenant_memberships (tenant_slug, account_id, role) values ($1, $2, 'owner')`,
    [isolated.workspace, account],
  );
  await database.rows(
    `insert into portal_environment_pat_grants (account_id, environment_id, granted_by)
     select $1, id, 'x' from environments where env_public_id = $2`,
    [account, isolated.scope.environmentId],
  );
  const archives = service.as(token);
  const headers = { authorization: `Bearer ${token}` };

  await report.check(
    'an owner exports by a personal access token where it was granted, as kld lets it read',
    async () => {
      const { status } = await send('GET', kld.stateUrl(isolated.stored(LABEL)), { headers });
      strictEqual(status, 200);
      const { operation } = await archives.export(LABEL, isolated.scope);
      strictEqual(operation.actor, 'ann@example.com');
    },
  );
  await report.check('and sees nothing elsewhere, as kld lets it read nothing', async () => {
    const { status } = await send('GET', kld.stateUrl(acme.stored(LABEL)), { headers });
    strictEqual(status, 401);
    strictEqual(await archives.preview(LABEL, acme.scope), null);
  });
}
