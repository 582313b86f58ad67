import { z } from 'zod';
import type { NamespaceSelector } from '../history/namespace.ts';
import type { Caller } from '../history/states.ts';
import { selectorOf } from './current-caller.ts';

/**
 * @file What an operation's row keeps of the request: all that another machine, or a later release, needs to carry it out. No
 * secret is in it: a token is named by its row.
 */

const text = z.string();
const readOnlySet = z.codec(
  z.array(text),
  z.custom<ReadonlySet<string>>((value) => value instanceof Set),
  {
    decode: (list) => new Set(list),
    encode: (set) => [...set],
  },
);
const bigint = z.codec(text, z.bigint(), { decode: (written) => BigInt(written), encode: String });
const environment = { workspace: text, environment: text };

const principal = z.object({
  subject: text,
  actor: text,
  scopes: readOnlySet,
  workspace: text.nullable(),
  environment: text.nullable(),
  statePatterns: z.array(text).readonly().nullable(),
  token: z.object({ kind: z.enum(['api-token', 'personal-access-token']), tokenId: text }).exactOptional(),
  grants: z
    .array(
      z.object({
        scopes: readOnlySet,
        reach: z.discriminatedUnion('kind', [
          z.object({ kind: z.literal('global') }),
          z.object({ kind: z.literal('workspace'), workspace: text }),
          z.object({ kind: z.literal('environment'), ...environment }),
        ]),
      }),
    )
    .readonly()
    .exactOptional(),
});

const conflictPolicy = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(['REFUSE', 'ARCHIVED_COPY']) }),
  z.strictObject({
    kind: z.literal('OVERWRITE'),
    confirmName: text,
    expectedCurrentSerial: bigint.nullable(),
  }),
]);

// Without the others, an earlier release knows what to do: they are there when they are wished for.
const exportOrder = z.strictObject({
  kind: z.literal('EXPORT'),
  retainUntil: text.optional(),
  legalHold: z.literal(true).optional(),
  sealing: z.strictObject({ recipients: z.array(text), discloseHistoryDigest: z.boolean() }).optional(),
});

const importOrder = z.strictObject({
  kind: z.literal('IMPORT'),
  upload: z.strictObject({
    /** The id of its record, which says where its pieces are. */
    key: text,
    /** Lowercase hex. */
    sha256: text,
    fileName: text,
    /** The field of the import's input that leads to it. */
    inputField: z.enum(['file', 'uploadId']).default('file'),
  }),
  label: text,
  onConflict: conflictPolicy,
  allowSharedLineage: z.boolean(),
  dryRun: z.boolean(),
});

const storedRequest = z.strictObject({
  environment: z.strictObject(environment).nullable(),
  principal,
  // Strict: what a later release asks for beyond this, this one would leave out without a word.
  order: z.discriminatedUnion('kind', [exportOrder, importOrder]),
});

/** What an export is to do. */
export type ExportOrder = z.output<typeof exportOrder>;

/** What an import is to do. */
export type ImportOrder = z.output<typeof importOrder>;

/** A file that a caller sent, in the store: whichever machine works on it can fetch it. */
export type StoredUpload = ImportOrder['upload'];

/** An operation's request: where, with whose rights, and what is to be done. */
export type OperationRequest = z.output<typeof storedRequest>;

/** The JSON text that a record keeps of a request. */
export function writeRequest(caller: Caller, order: OperationRequest['order']): string {
  const request = { environment: selectorOf(caller), principal: caller.principal, order };
  return JSON.stringify(z.encode(storedRequest, request));
}

/** The request that a record keeps; null when a later release wrote it and means something this one does not know. */
export function readRequest(written: string): OperationRequest | null {
  return storedRequest.safeParse(JSON.parse(written)).data ?? null;
}

const whereabouts = storedRequest.pick({ environment: true }).strip();

/** The environment of a request, whatever else is in it; undefined when a later release says it in a way of its own. */
export function environmentOf(written: string): NamespaceSelector | undefined {
  return whereabouts.safeParse(JSON.parse(written)).data?.environment;
}
