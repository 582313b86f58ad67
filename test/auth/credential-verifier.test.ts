import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { verifyCredential } from '../../src/auth/credential-verifier.ts';
import { InvalidCredentialError, type JwtVerifier } from '../../src/auth/jwt-verifier.ts';
import type { CredentialPolicies } from '../../src/auth/kilolock-credentials.ts';
import { mayIn, type Principal, SCOPES } from '../../src/auth/principal.ts';
import { connectDatabase, type KilolockDatabase } from '../../src/database/connection.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  addMember,
  createAccount,
  createApiToken,
  createEnvironment,
  createWorkspace,
  grantEnvironment,
  grantRole,
  type TestEnvironment,
  type TestToken,
} from './support/kilolock-tenancy.ts';

let testDatabase: TestDatabase;
let database: KilolockDatabase;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = testDatabase.database;
});

afterAll(async () => {
  await testDatabase.drop();
});

const NOTHING: CredentialPolicies = {
  token: { export: false, import: false },
  owner: { export: false, import: false },
};
const OWNERS: CredentialPolicies = { ...NOTHING, owner: { export: true, import: true } };

const JWT_PRINCIPAL: Principal = {
  subject: 'jwt',
  actor: 'jwt',
  scopes: new Set(),
  workspace: null,
  environment: null,
  statePatterns: null,
};

/** Takes every JWT it is given, and counts them. */
function jwtVerifier(accepts = true): JwtVerifier & { asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    async verify(token) {
      asked.push(token);
      if (!accepts) throw new InvalidCredentialError('not by this one');
      return JWT_PRINCIPAL;
    },
  };
}

function verify(
  authorization: string | undefined,
  policies: CredentialPolicies = NOTHING,
  { jwt = jwtVerifier(), of = database }: { jwt?: JwtVerifier; of?: KilolockDatabase } = {},
): Promise<Principal | null> {
  return verifyCredential({ jwt, database: of, policies }, authorization);
}

async function accepted(authorization: string, policies: CredentialPolicies = NOTHING): Promise<Principal> {
  const principal = await verify(authorization, policies);
  if (principal === null) throw new Error('nobody');
  return principal;
}

/** `refused` with the reason for the log, or whom it was taken for. */
async function outcomeOf(authorization: string, policies?: CredentialPolicies): Promise<string> {
  try {
    return `accepted as ${(await verify(authorization, policies))?.subject}`;
  } catch (error) {
    if (!(error instanceof InvalidCredentialError)) throw error;
    expect(error.message).toBe('The credential is not valid.');
    return `refused: ${error.reason}`;
  }
}

const REFUSED = 'refused: no active Kilolock token';

function bearer({ secret }: { secret: string }): string {
  return `Bearer ${secret}`;
}

function basic(username: string, secret: string, encoding: BufferEncoding = 'latin1'): string {
  return `Basic ${Buffer.from(`${username}:${secret}`, encoding).toString('base64')}`;
}

/** The scopes a principal has in an environment. */
function scopesIn(principal: Principal, environment: TestEnvironment): string[] {
  return SCOPES.filter((scope) => mayIn(principal, scope, environment));
}

async function change(table: string, id: string, assignment: string): Promise<void> {
  await database.pool.query(`update ${table} set ${assignment} where id = $1`, [id]);
}

async function lastUse(table: string, { id }: TestToken): Promise<string | null> {
  const { rows } = await database.pool.query(`select last_used_at from ${table} where id = $1`, [id]);
  return rows[0].last_used_at;
}

describe('an API token', () => {
  test('gives a principal that may read in its own environment and nothing else', async () => {
    const environment = await createEnvironment(database);
    const token = await createApiToken(database, environment, { name: 'deploy' });
    const principal = await accepted(bearer(token));
    expect(principal).toMatchObject({
      subject: `kilolock:api-token:${token.id}`,
      actor: `${environment.tenantSlug}/${environment.environmentSlug}/deploy`,
      workspace: environment.workspace,
      environment: environment.environment,
      statePatterns: null,
    });
    expect(scopesIn(principal, environment)).toEqual(['state.read']);
    expect([...principal.scopes]).toEqual(['state.read']);
    const beside = await createEnvironment(database, environment);
    expect(scopesIn(principal, beside)).toEqual([]);
    expect(scopesIn(principal, await createEnvironment(database))).toEqual([]);
  });

  test.each([
    [true, false, ['state.read', 'state.export']],
    [false, true, ['state.read', 'state.import']],
    [true, true, ['state.read', 'state.export', 'state.import']],
  ])(
    'may also do in its own environment what the policy adds: export %p, import %p',
    async (exports, imports, scopes) => {
      const environment = await createEnvironment(database);
      const policies = { ...NOTHING, token: { export: exports, import: imports } };
      const principal = await accepted(bearer(await createApiToken(database, environment)), policies);
      expect(scopesIn(principal, environment)).toEqual(scopes);
      expect(scopesIn(principal, await createEnvironment(database, environment))).toEqual([]);
    },
  );

  test.each([
    ['revoked', 'api_tokens', 'revoked_at = now()'],
    ['suspended', 'api_tokens', "lifecycle_status = 'suspended'"],
    ['archived', 'api_tokens', "lifecycle_status = 'archived'"],
    ['of a suspended workspace', 'tenants', "lifecycle_status = 'suspended'"],
    ['of an archived workspace', 'tenants', "lifecycle_status = 'archived'"],
    ['of a suspended environment', 'environments', "lifecycle_status = 'suspended'"],
    ['of an archived environment', 'environments', "lifecycle_status = 'archived'"],
  ])('is refused from the moment it is %s', async (_name, table, assignment) => {
    const environment = await createEnvironment(database);
    const token = await createApiToken(database, environment);
    expect(await outcomeOf(bearer(token))).toContain('accepted');
    const ids: Record<string, string> = {
      api_tokens: token.id,
      tenants: environment.tenantId,
      environments: environment.environmentId,
    };
    await change(table, ids[table] ?? '', assignment);
    expect(await outcomeOf(bearer(token))).toBe(REFUSED);
    expect(await outcomeOf(bearer(token), OWNERS)).toBe(REFUSED);
  });

  test('is refused when its environment went to another workspace without it', async () => {
    const environment = await createEnvironment(database);
    const token = await createApiToken(database, environment);
    const other = await createWorkspace(database);
    await change('environments', environment.environmentId, `tenant_id = '${other.tenantId}'`);
    expect(await outcomeOf(bearer(token))).toBe(REFUSED);
  });

  test('may be any text, spaces and bytes that are no ASCII included', async () => {
    const environment = await createEnvironment(database);
    for (const text of ['x', 'correct horse battery', 'a.b.c', 'tök€n', 'Bearer', 'user:pass']) {
      // A header's value reaches the service as one character for each byte.
      const token = await createApiToken(database, environment, { secret: Buffer.from(text) });
      expect([text, await outcomeOf(bearer(token))]).toEqual([text, expect.stringContaining(token.id)]);
      expect([text, await outcomeOf(basic('', token.secret))]).toEqual([
        text,
        expect.stringContaining(token.id),
      ]);
    }
  });

  test.each(['', 'x', 'kl_', ' '])('is refused when anything is added to it: %j', async (addition) => {
    const { secret } = await createApiToken(database, await createEnvironment(database));
    const changed = addition.trim() === '' ? secret.slice(0, -1) : secret + addition;
    expect(await outcomeOf(`Bearer ${changed}`)).toBe(REFUSED);
    expect(await outcomeOf(`Bearer ${secret.toUpperCase()}`)).toBe(REFUSED);
  });
});

describe('the last use of a token', () => {
  test('is noted once a minute', async () => {
    const token = await createApiToken(database, await createEnvironment(database));
    expect(await lastUse('api_tokens', token)).toBeNull();
    await accepted(bearer(token));
    const first = await lastUse('api_tokens', token);
    expect(first).not.toBeNull();
    await accepted(bearer(token));
    expect(await lastUse('api_tokens', token)).toBe(first);
    await change('api_tokens', token.id, "last_used_at = now() - interval '61 seconds'");
    const stale = await lastUse('api_tokens', token);
    await accepted(bearer(token));
    expect(await lastUse('api_tokens', token)).not.toBe(stale);
  });

  test('that cannot be written fails no request', async () => {
    const token = await createApiToken(database, await createEnvironment(database));
    const readOnly = connectDatabase({
      connectionString: `${testDatabase.connectionString}?options=-c%20default_transaction_read_only%3Don`,
    });
    try {
      const principal = await verify(bearer(token), NOTHING, { of: readOnly });
      expect(principal?.subject).toBe(`kilolock:api-token:${token.id}`);
      expect(await lastUse('api_tokens', token)).toBeNull();
    } finally {
      await readOnly.close();
    }
  });

  test('waits for nobody who has the row locked', async () => {
    const token = await createApiToken(database, await createEnvironment(database));
    const client = await database.pool.connect();
    try {
      await client.query('begin');
      await client.query('select from api_tokens where id = $1 for update', [token.id]);
      expect((await accepted(bearer(token))).subject).toBe(`kilolock:api-token:${token.id}`);
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  test('is not noted for a credential that is refused', async () => {
    const token = await createApiToken(database, await createEnvironment(database));
    expect(await outcomeOf(basic('another-workspace', token.secret))).toBe(REFUSED);
    expect(await lastUse('api_tokens', token)).toBeNull();
  });
});

describe('a role of an API token', () => {
  async function operator() {
    const home = await createEnvironment(database);
    const target = await createEnvironment(database);
    const beside = await createEnvironment(database, target);
    const token = await createApiToken(database, home);
    return { home, target, beside, token };
  }

  test('grants what it permits where it was granted, wherever the token is from', async () => {
    const { home, target, beside, token } = await operator();
    await grantRole(
      database,
      token,
      ['state.export'],
      ['environment', `${target.tenantSlug}/${target.environmentSlug}`],
    );
    const principal = await accepted(bearer(token));
    expect(scopesIn(principal, target)).toEqual(['state.export']);
    expect(scopesIn(principal, beside)).toEqual([]);
    expect(scopesIn(principal, home)).toEqual(['state.read']);
    expect([...principal.scopes].sort()).toEqual(['state.export', 'state.read']);
  });

  test('granted for a workspace holds in all its environments, and not at home', async () => {
    const { home, target, beside, token } = await operator();
    await grantRole(database, token, ['state.import', 'state.raw.read'], ['tenant', target.tenantSlug]);
    const principal = await accepted(bearer(token));
    expect(scopesIn(principal, target)).toEqual(['state.import', 'state.raw.read']);
    expect(scopesIn(principal, beside)).toEqual(['state.import', 'state.raw.read']);
    expect(scopesIn(principal, home)).toEqual(['state.read']);
  });

  test('granted globally holds everywhere', async () => {
    const { home, target, token } = await operator();
    await grantRole(database, token, [...SCOPES], ['global', '']);
    const principal = await accepted(bearer(token));
    expect(scopesIn(principal, target)).toEqual([...SCOPES]);
    expect(scopesIn(principal, home)).toEqual([...SCOPES]);
  });

  test('with permissions for other things grants nothing here', async () => {
    const { target, token } = await operator();
    const others = ['state.delete', 'state.config.update', 'rbac.manage', 'tenant.read'];
    await grantRole(database, token, others, ['global', '']);
    const principal = await accepted(bearer(token));
    expect(scopesIn(principal, target)).toEqual([]);
    expect([...principal.scopes]).toEqual(['state.read']);
  });

  test.each<[name: string, changes: Record<string, unknown>]>([
    ['is revoked', { revoked_at: '2026-03-02T10:00:00Z' }],
    ['is of another kind of subject', { subject_kind: 'account' }],
    ['is of another token', { subject_id: '00000000-0000-4000-8000-000000000000' }],
  ])('grants nothing when it %s', async (_name, changes) => {
    const { target, token } = await operator();
    await grantRole(database, token, ['state.export'], ['tenant', target.tenantSlug], changes);
    expect(scopesIn(await accepted(bearer(token)), target)).toEqual([]);
  });

  test('grants nothing when where it holds is not of the form Kilolock writes', async () => {
    const { target, token } = await operator();
    const { tenantSlug, environmentSlug, workspace, environment } = target;
    for (const scope of [
      ['global', tenantSlug],
      ['tenant', ''],
      ['tenant', workspace],
      ['tenant', `${tenantSlug}/${environmentSlug}`],
      ['tenant', `${tenantSlug}/`],
      ['environment', ''],
      ['environment', tenantSlug],
      ['environment', `${tenantSlug}/`],
      ['environment', environmentSlug],
      ['environment', `/${environmentSlug}`],
      ['environment', `${tenantSlug}/${environmentSlug}/more`],
      ['environment', `${workspace}/${environment}`],
      ['environment', `${tenantSlug}/%`],
      ['environment', `${tenantSlug.toUpperCase()}/${environmentSlug}`],
    ] as const) {
      await grantRole(database, token, ['state.export'], scope);
      expect([scope, scopesIn(await accepted(bearer(token)), target)]).toEqual([scope, []]);
    }
  });

  test('of an environment does not reach one of the same slug in another workspace', async () => {
    const { target, token } = await operator();
    const namesake = await createEnvironment(database);
    await change('environments', namesake.environmentId, `slug = '${target.environmentSlug}'`);
    await grantRole(
      database,
      token,
      ['state.export'],
      ['environment', `${target.tenantSlug}/${target.environmentSlug}`],
    );
    const principal = await accepted(bearer(token));
    expect(scopesIn(principal, target)).toEqual(['state.export']);
    expect(scopesIn(principal, namesake)).toEqual([]);
  });
});

describe('a personal access token', () => {
  async function owner(role: Parameters<typeof addMember>[3] = 'owner') {
    const environment = await createEnvironment(database);
    const account = await createAccount(database);
    await addMember(database, account, environment, role);
    await grantEnvironment(database, account, environment);
    return { environment, account };
  }

  test.each([
    ['none', false, false, null],
    ['export', true, false, ['state.read', 'state.export']],
    ['import', false, true, ['state.read', 'state.import']],
    ['both', true, true, ['state.read', 'state.export', 'state.import']],
  ])('is accepted for what the policy allows owners alone: %s', async (_name, exports, imports, scopes) => {
    const { environment, account } = await owner();
    const policies = { ...NOTHING, owner: { export: exports, import: imports } };
    if (scopes === null) {
      expect(await outcomeOf(bearer(account), policies)).toBe(REFUSED);
      return;
    }
    const principal = await accepted(bearer(account), policies);
    expect(principal).toMatchObject({
      subject: `kilolock:account:${account.accountId}`,
      actor: account.email,
      workspace: environment.workspace,
      environment: environment.environment,
    });
    expect(scopesIn(principal, environment)).toEqual(scopes);
    expect(scopesIn(principal, await createEnvironment(database, environment))).toEqual([]);
    expect(await lastUse('portal_personal_access_tokens', account)).not.toBeNull();
  });

  test.each<[role: Parameters<typeof addMember>[3], isAccepted: boolean]>([
    ['owner', true],
    ['tenant_admin', true],
    ['billing_admin', false],
    ['member', false],
  ])('is for those who run a workspace: %s', async (role, isAccepted) => {
    const { account } = await owner(role);
    expect(await outcomeOf(bearer(account), OWNERS)).toContain(isAccepted ? 'accepted' : REFUSED);
  });

  test('works in every environment granted to it, and has to name one', async () => {
    const { environment, account } = await owner();
    const beside = await createEnvironment(database, environment);
    const notGranted = await createEnvironment(database, environment);
    await grantEnvironment(database, account, beside);
    const principal = await accepted(bearer(account), OWNERS);
    expect([principal.workspace, principal.environment]).toEqual(['', '']);
    expect(scopesIn(principal, environment)).toContain('state.export');
    expect(scopesIn(principal, beside)).toContain('state.export');
    expect(scopesIn(principal, notGranted)).toEqual([]);
  });

  test('works in the personal workspace of its owner without a grant, and in that of nobody else', async () => {
    const account = await createAccount(database);
    const mine = await createEnvironment(
      database,
      await createWorkspace(database, { kind: 'personal', personal_owner_account_id: account.accountId }),
    );
    const other = await createAccount(database);
    const theirs = await createEnvironment(
      database,
      await createWorkspace(database, { kind: 'personal', personal_owner_account_id: other.accountId }),
    );
    await addMember(database, account, mine, 'owner');
    await addMember(database, account, theirs, 'tenant_admin');
    const principal = await accepted(bearer(account), OWNERS);
    expect(scopesIn(principal, mine)).toContain('state.export');
    expect(scopesIn(principal, theirs)).toEqual([]);
  });

  test.each([
    [
      'the token is revoked',
      'update portal_personal_access_tokens set revoked_at = now() where id = $1',
      'id',
    ],
    [
      'the membership is revoked',
      'update tenant_memberships set revoked_at = now() where account_id = $1',
      'accountId',
    ],
    [
      'the grant is revoked',
      'update portal_environment_pat_grants set revoked_at = now() where account_id = $1',
      'accountId',
    ],
    ['there is no membership', 'delete from tenant_memberships where account_id = $1', 'accountId'],
    [
      'the workspace is suspended',
      `update tenants set lifecycle_status = 'suspended'
       where slug in (select tenant_slug from tenant_memberships where account_id = $1)`,
      'accountId',
    ],
    [
      'the environment is suspended',
      `update environments set lifecycle_status = 'suspended'
       where id in (select environment_id from portal_environment_pat_grants where account_id = $1)`,
      'accountId',
    ],
  ] as const)('is refused from the moment that %s', async (_name, statement, key) => {
    const { account } = await owner();
    expect(await outcomeOf(bearer(account), OWNERS)).toContain('accepted');
    await database.pool.query(statement, [account[key]]);
    expect(await outcomeOf(bearer(account), OWNERS)).toBe(REFUSED);
  });
});

describe('HTTP Basic', () => {
  test('takes an API token as the password of its workspace, by slug or public id', async () => {
    const environment = await createEnvironment(database);
    const { id, secret } = await createApiToken(database, environment);
    for (const username of [environment.tenantSlug, environment.workspace, '']) {
      expect(await outcomeOf(basic(username, secret))).toContain(id);
    }
    for (const username of ['x', environment.environmentSlug, environment.tenantSlug.toUpperCase(), ' ']) {
      expect([username, await outcomeOf(basic(username, secret))]).toEqual([username, REFUSED]);
    }
  });

  test('takes a personal access token as the password of a workspace, by public id alone', async () => {
    const account = await createAccount(database);
    const environments = [await createEnvironment(database), await createEnvironment(database)] as const;
    for (const environment of environments) {
      await addMember(database, account, environment, 'owner');
      await grantEnvironment(database, account, environment);
    }
    const [first, second] = environments;
    const principal = await accepted(basic(first.workspace, account.secret), OWNERS);
    expect(scopesIn(principal, first)).toContain('state.export');
    expect(scopesIn(principal, second)).toEqual([]);
    expect(principal.environment).toBe(first.environment);
    expect(await outcomeOf(basic(first.tenantSlug, account.secret), OWNERS)).toBe(REFUSED);
    expect(await outcomeOf(basic('ws_000000000000', account.secret), OWNERS)).toBe(REFUSED);
  });
});

describe('which verifier a credential goes to', () => {
  const jose = Buffer.from('{"alg":"RS256"}').toString('base64url');

  test('is the JWT verifier for a bearer token that has the form of one, and no other after it', async () => {
    const environment = await createEnvironment(database);
    for (const secret of [`${jose}.e30.c2ln`, `${jose}..`, `${jose}.a.b.c.d`]) {
      await createApiToken(database, environment, { secret });
      const jwt = jwtVerifier();
      expect(await verify(`Bearer ${secret}`, NOTHING, { jwt })).toBe(JWT_PRINCIPAL);
      expect(jwt.asked).toEqual([secret]);
      await expect(verify(`Bearer ${secret}`, NOTHING, { jwt: jwtVerifier(false) })).rejects.toThrow(
        InvalidCredentialError,
      );
    }
  });

  test('is the tokens of Kilolock for everything else, and no other after it', async () => {
    for (const secret of ['unknown', 'no.such.token', `${jose}.e30`, `${jose}`, 'klp_unknown']) {
      const jwt = jwtVerifier();
      await expect(verify(`Bearer ${secret}`, OWNERS, { jwt })).rejects.toThrow(InvalidCredentialError);
      expect(jwt.asked).toEqual([]);
    }
  });

  test('is none for a JWT given as a password', async () => {
    const jwt = jwtVerifier();
    await expect(verify(basic('', `${jose}.e30.c2ln`), OWNERS, { jwt })).rejects.toThrow(
      InvalidCredentialError,
    );
    expect(jwt.asked).toEqual([]);
  });

  test('is none without a credential', async () => {
    expect(await verify(undefined)).toBeNull();
  });

  test.each([
    'Bearer',
    'Bearer ',
    'Bearer  ',
    'Basic',
    'Basic ',
    'Basic !',
    `Basic ${Buffer.from('no colon').toString('base64')}`,
    `Basic ${Buffer.from('nothing after:').toString('base64')}`,
    'Digest x',
    'kl_abc',
    'Bearer Ā',
    'Bearer a\nb',
  ])('is none, and nobody is let in, when the header cannot be read: %j', async (value) => {
    expect(await outcomeOf(value, OWNERS)).toBe('refused: neither a bearer token nor a user and password');
  });
});

test.each(['', ' ', '\t'])('an empty header is not none, and says so: %j', async (authorization) => {
  await expect(verify(authorization)).rejects.toMatchObject({
    name: 'InvalidCredentialError',
    message: 'The Authorization header is empty.',
  });
});

test('a refusal repeats no part of a credential', async () => {
  for (const authorization of [
    'Bearer kl_secretsecret',
    basic('acme', 'kl_secretsecret'),
    'Other secretsecret',
  ]) {
    const error: unknown = await verify(authorization, OWNERS).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(InvalidCredentialError);
    expect(JSON.stringify([error, Object.getOwnPropertyDescriptors(error)])).not.toContain('secretsecret');
  }
});
