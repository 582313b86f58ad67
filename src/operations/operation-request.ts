import { z } from 'zod';
import type { Principal } from '../auth/principal.ts';
import type { NamespaceSelector } from '../history/namespace.ts';
import type { Caller } from '../history/states.ts';
import { selectorOf } from './current-caller.ts';

/**
 * @file What an operation's row keeps of the request: all that another machine, or a later release, needs to carry it out. No
 * secret is in it: a token is named by its row.
 */

const text = z.string();

const environment = { workspace: text, environment: text };

const storedPrincipal = z.object({
  subject: text,
  actor: text,
  scopes: z.array(text),
  workspace: text.nullable(),
  environment: text.nullable(),
  statePatterns: z.array(text).nullable(),
  token: z.object({ kind: z.enum(['api-token', 'personal-access-token']), tokenId: text }).optional(),
  grants: z
    .array(
      z.object({
        scopes: z.array(text),
        reach: z.discriminatedUnion('kind', [
          z.object({ kind: z.literal('global') }),
          z.object({ kind: z.literal('workspace'), workspace: text }),
          z.object({ kind: z.literal('environment'), ...environment }),
        ]),
      }),
    )
    .optional(),
});

const conflictPolicy = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(['REFUSE', 'ARCHIVED_COPY']) }),
  z.strictObject({
    kind: z.literal('OVERWRITE'),
    confirmName: text,
    expectedCurrentSerial: text.transform(BigInt).nullable(),
  }),
]);

// Strict: what a later release asks for beyond this, this one would leave out without a word.
const order = z.discriminatedUnion('kind', [
  // Without the others, an earlier release knows what to do: they are there when they are wished for.
  z.strictObject({
    kind: z.literal('EXPORT'),
    retainUntil: text.optional(),
    legalHold: z.literal(true).optional(),
    sealing: z.strictObject({ recipients: z.array(text), discloseHistoryDigest: z.boolean() }).optional(),
  }),
  z.strictObject({
    kind: z.literal('IMPORT'),
    upload: z.strictObject({
      key: text,
      sha256: text,
      fileName: text,
      inputField: z.enum(['file', 'uploadId']).default('file'),
    }),
    label: text,
    onConflict: conflictPolicy,
    allowSharedLineage: z.boolean(),
    dryRun: z.boolean(),
  }),
]);

const storedRequest = z.strictObject({
  environment: z.strictObject(environment).nullable(),
  principal: storedPrincipal,
  order,
});

/** What is to be done. */
export type OperationOrder = z.output<typeof order>;

/** An operation's request: where, with whose rights, and what. */
export interface OperationRequest {
  readonly environment: NamespaceSelector;
  readonly principal: Principal;
  readonly order: OperationOrder;
}

/** The JSON text that a record keeps of a request. */
export function writeRequest(caller: Caller, asked: OperationOrder): string {
  const { subject, actor, scopes, workspace, environment, statePatterns, token, grants } = caller.principal;
  const selector = selectorOf(caller);
  return JSON.stringify(
    {
      environment: selector && { workspace: selector.workspace, environment: selector.environment },
      principal: {
        subject,
        actor,
        scopes: [...scopes],
        workspace,
        environment,
        statePatterns,
        token,
        grants: grants?.map(({ scopes, reach }) => ({ scopes: [...scopes], reach })),
      },
      order: asked,
    },
    (_key, value) => (typeof value === 'bigint' ? String(value) : value),
  );
}

/** The request that a record keeps; null when a later release wrote it and means something this one does not know. */
export function readRequest(written: string): OperationRequest | null {
  const read = storedRequest.safeParse(JSON.parse(written));
  if (!read.success) return null;
  const { principal, ...rest } = read.data;
  const { token, grants, ...known } = principal;
  return {
    ...rest,
    principal: {
      ...known,
      scopes: new Set(principal.scopes),
      ...(token && { token }),
      ...(grants && {
        grants: grants.map(({ scopes, reach }) => ({ scopes: new Set(scopes), reach })),
      }),
    },
  };
}

const whereabouts = z.object({ environment: z.strictObject(environment).nullable() });

/** The environment of a request, whatever else is in it; undefined when a later release says it in a way of its own. */
export function environmentOf(written: string): NamespaceSelector | undefined {
  return whereabouts.safeParse(JSON.parse(written)).data?.environment;
}
