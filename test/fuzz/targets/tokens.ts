import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { request } from 'node:http';
import {
  DEVELOPMENT_AUDIENCE,
  DEVELOPMENT_ISSUER,
  loadOrCreateDevelopmentKey,
} from '../../../src/auth/development-key.ts';
import { type Choices, choices } from '../../support/choices.ts';
import { startTestService } from '../../support/service.ts';
import type { FuzzTarget } from '../target.ts';
import { ServiceAnswers } from './service-answers.ts';

/** How an `Authorization` header is made: the keys it is signed with are others in each run. */
interface TokenRecipe {
  /** What stands before the token, and after it. */
  readonly before: string;
  readonly after: string;
  /** Members of the JOSE header and claims, in place of the right ones; null takes one away. */
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly key: 'right' | 'another' | 'public key as a secret' | 'none';
  /** Changes of the text: at a place, so many characters are replaced. */
  readonly edits: readonly { readonly at: number; readonly cut: number; readonly put: string }[];
}

const RIGHT: TokenRecipe = { before: 'Bearer ', after: '', header: {}, claims: {}, key: 'right', edits: [] };
const HOUR = 3600;
const ODD: readonly unknown[] = [
  null,
  '',
  0,
  -1,
  1e300,
  true,
  [],
  {},
  [[]],
  'a\u0000b',
  '\u202e',
  { toString: 1 },
  'x'.repeat(500),
];
const ODD_TIMES: readonly unknown[] = [...ODD, -HOUR, HOUR, 'soon', '99999999999', 9e15, [HOUR]];

function build(choice: Choices): TokenRecipe {
  const value = () => choice.of(ODD);
  return {
    before: choice.of([
      'Bearer ',
      'bearer ',
      'Bearer   ',
      'Bearer',
      '',
      'Basic ',
      'Token ',
      'Bearer\t',
      'Bearer Bearer ',
      'Bearer ,',
    ]),
    after: choice.of(['', '', '', ' ', '=', '.', ',x', ' '.repeat(2000), 'ÿ', '\u00a0']),
    header: picked(choice, {
      alg: ['none', 'None', 'HS256', 'RS256', 'ES256', 'EdDSA', 'Ed25519', ...ODD],
      kid: ['', '__proto__', '../../key', ...ODD],
      typ: ['JWT', 'kilolock-link+jwt', ...ODD],
      crit: [['exp'], ['b64'], ...ODD],
      b64: [false, true, ...ODD],
      jwk: [{ kty: 'OKP', crv: 'Ed25519', x: '' }, ...ODD],
      jku: ['http://127.0.0.1:1/keys', ...ODD],
      zip: ['DEF', ...ODD],
    }),
    claims: picked(choice, {
      iss: ['kilolock-state-archive/links', `${DEVELOPMENT_ISSUER}/`, [DEVELOPMENT_ISSUER], ...ODD],
      aud: [[DEVELOPMENT_AUDIENCE], [DEVELOPMENT_AUDIENCE, 'x'], ...ODD],
      sub: ['kilolock:api-token:1', 'a\u200bb', ...ODD],
      exp: ODD_TIMES,
      nbf: ODD_TIMES,
      iat: ODD_TIMES,
      scope: [
        'state.read',
        'state.read\u00a0state.export',
        ['state.read'],
        ['state.read state.export'],
        ...ODD,
      ],
      states: ['*', '**', ['a*'], ...ODD],
      workspace: ['ws_1', 'ws_1/..', ...ODD],
      environment: ['env_1', ...ODD],
      name: ODD,
      __proto__x: ODD,
    }),
    key: choice.of(['right', 'right', 'another', 'public key as a secret', 'none'] as const),
    edits: choice.some(choice.of([0, 0, 2]), () => ({
      at: choice.below(600),
      cut: choice.below(3),
      put: choice.of([
        '',
        'A',
        '.',
        '=',
        '-',
        '_',
        '+',
        '/',
        '\u00e9',
        ' ',
        JSON.stringify(value()).replaceAll(/[^\u0020-\u00ff]/g, ''),
      ]),
    })),
  };
}

function picked(
  choice: Choices,
  values: Readonly<Record<string, readonly unknown[]>>,
): Record<string, unknown> {
  const names = choice.some(choice.of([0, 1, 1, 3]), () => choice.of(Object.keys(values)));
  return Object.fromEntries(names.map((name) => [name, choice.of(values[name] ?? ODD)]));
}

/** Whether a token of this recipe could be good at all. What is said of its claims is no more than what is certain. */
function mayBeGood({ header, claims, key, before, after }: TokenRecipe): boolean {
  const { iss, aud, sub, exp, nbf, scope } = claims;
  const audiences = Array.isArray(aud) ? aud : [DEVELOPMENT_AUDIENCE];
  return (
    key === 'right' &&
    /^bearer +$/i.test(before) &&
    /^ *$/.test(after) &&
    !('kid' in header) &&
    (!('alg' in header) || ['EdDSA', 'Ed25519'].some((alg) => alg === header.alg)) &&
    !('iss' in claims && iss !== DEVELOPMENT_ISSUER) &&
    !('aud' in claims && !(Array.isArray(aud) && audiences.includes(DEVELOPMENT_AUDIENCE))) &&
    !('sub' in claims && (typeof sub !== 'string' || sub === '' || sub.startsWith('kilolock:'))) &&
    !('exp' in claims && !(typeof exp === 'number' && exp > -HOUR)) &&
    !('nbf' in claims && nbf !== null && !(typeof nbf === 'number' && nbf < HOUR)) &&
    !('scope' in claims && typeof scope === 'string' && scope.includes('\u00a0'))
  );
}

/** `Authorization` headers: let in is only what is signed with the right key and says what it must; never INTERNAL. */
export const tokensTarget: FuzzTarget<TokenRecipe> = {
  name: 'tokens',
  inputs: choices(60).map(build),
  encode: (input) => Buffer.from(`${JSON.stringify(input, null, 2)}\n`),
  decode: (file) => ({ ...RIGHT, ...JSON.parse(file.toString()) }),
  runsInSuite: 100,
  async open() {
    const service = await startTestService({ LOG_LEVEL: 'info' });
    const { keyId, privateKey, publicKey } = await loadOrCreateDevelopmentKey(service.dataDirectory);
    const another = generateKeyPairSync('ed25519').privateKey;
    const answers = new ServiceAnswers(service);

    function signature(key: TokenRecipe['key'], input: string): string {
      const withKey = (chosen: KeyObject) => sign(null, Buffer.from(input), chosen).toString('base64url');
      if (key === 'right') return withKey(privateKey);
      if (key === 'another') return withKey(another);
      if (key === 'none') return '';
      const secret = publicKey.export({ type: 'spki', format: 'pem' });
      return createHmac('sha256', secret).update(input).digest('base64url');
    }

    function tokenOf({ header, claims, key, edits }: TokenRecipe, now: number): string {
      const times = ['exp', 'nbf', 'iat'].filter((name) => typeof claims[name] === 'number');
      const parts = [
        without({ alg: 'EdDSA', kid: keyId, ...header }),
        without({
          iss: DEVELOPMENT_ISSUER,
          aud: DEVELOPMENT_AUDIENCE,
          sub: 'fuzz',
          exp: now + HOUR,
          scope: 'state.read',
          ...claims,
          ...Object.fromEntries(times.map((name) => [name, now + Number(claims[name])])),
        }),
      ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
      const input = parts.join('.');
      return edits.reduce(
        (text, { at, cut, put }) =>
          text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + cut),
        `${input}.${signature(key, input)}`,
      );
    }

    return {
      async check(recipe) {
        const now = Math.floor(Date.now() / 1000);
        const token = tokenOf(recipe, now);
        const authorization = `${recipe.before}${token}${recipe.after}`;
        const { status, text } = await post(service.url, authorization);
        answers.check(status, text);
        if (![200, 401].includes(status)) throw new Error(`It was answered ${status}: ${text.slice(0, 300)}`);
        const isGood = mayBeGood(recipe) && saysTheSame(token, tokenOf({ ...recipe, edits: [] }, now));
        if (status === 200 && !isGood) throw new Error('A token was accepted that is not good.');
      },
      close: () => service.stop(),
    };
  },
};

/** Whether two tokens sign the same with the same signature; the last letter of one has bits that mean nothing. */
function saysTheSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((token) => {
    const end = token.lastIndexOf('.');
    return token.slice(0, end + 1) + Buffer.from(token.slice(end + 1), 'base64url').toString('hex');
  });
  return first === second;
}

function without(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));
}

/** With Node's own client, which sends every header that HTTP allows as it is. */
function post(url: string, authorization: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}/graphql`,
      { method: 'POST', headers: { 'content-type': 'application/json', authorization } },
      async (response) => {
        const chunks: Buffer[] = [];
        for await (const chunk of response) chunks.push(chunk);
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() });
      },
    );
    sent.on('error', reject);
    sent.end('{"query":"{ stateArchives { nodes { id } } }"}');
  });
}
