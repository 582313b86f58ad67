import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});

afterAll(async () => {
  await service.stop();
});

const CLAIMS = { sub: 'mallory', scope: 'state.read state.export', scopes: ['state.read'] };

/** Where gateways and proxies put what they have decoded of a token, or of its bearer. */
const PLAIN_HEADERS: Record<string, string> = {
  'x-jwt-claims': JSON.stringify(CLAIMS),
  'x-jwt-payload': Buffer.from(JSON.stringify(CLAIMS)).toString('base64url'),
  'x-user-info': JSON.stringify(CLAIMS),
  'x-userinfo': Buffer.from(JSON.stringify(CLAIMS)).toString('base64'),
  'x-principal': JSON.stringify({ subject: 'mallory', scopes: ['state.read'] }),
  'x-scope': 'state.read',
  'x-scopes': 'state.read state.export',
  'x-user': 'mallory',
  'x-user-id': 'mallory',
  'x-forwarded-user': 'mallory',
  'x-forwarded-access-token': 'kl_token',
  'x-remote-user': 'mallory',
  'x-workspace-id': 'ws_000000000000',
  'x-kilolock-state-name': 'ws_000000000000/env_000000000000/a',
  'x-amzn-oidc-identity': 'mallory',
  'x-goog-authenticated-user-email': 'mallory@example.com',
  'proxy-authorization': 'Bearer kl_token',
};

async function ask(headers: Record<string, string>) {
  const response = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ query: '{ stateArchives { nodes { id } } }' }),
  });
  return (await response.json()) as { errors?: { extensions: { code: string } }[] };
}

describe('a plain header', () => {
  test('gives nobody an identity', async () => {
    const { errors } = await ask(PLAIN_HEADERS);
    expect(errors?.map(({ extensions }) => extensions.code)).toEqual(['UNAUTHENTICATED']);
  });

  test('adds nothing to what a credential permits', async () => {
    const authorization = `Bearer ${await service.token({ scopes: ['state.export'] })}`;
    const { errors } = await ask({ ...PLAIN_HEADERS, authorization });
    expect(errors?.map(({ extensions }) => extensions.code)).toEqual(['FORBIDDEN']);
  });
});
