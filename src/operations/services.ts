import { readFileSync } from 'node:fs';
import type { Logger } from 'pino';
import type { ArchiveLimits } from '../archive/format.ts';
import type { ArchiveSigner, SignatureTrust } from '../archive/signing-keys.ts';
import type { LinkSigner } from '../auth/links.ts';
import type { Principal, TokenReference } from '../auth/principal.ts';
import type { Quotas } from '../base/quotas.ts';
import type { Caller } from '../history/states.ts';
import type { Inspector } from '../inspection/inspector.ts';
import type { ArchiveStore } from '../store/archive-store.ts';
import type { Scratch } from '../store/scratch.ts';
import type { DownloadAccesses } from './downloads.ts';
import type { Environments } from './environments.ts';
import type { OperationQueue } from './operation-queue.ts';
import type { OperationWorker } from './operation-worker.ts';
import type { UploadsInFlight } from './uploads-in-flight.ts';

/** What operations work with, made once at start-up. */
export interface ArchiveServices extends Quotas {
  readonly environments: Environments;
  readonly store: ArchiveStore;
  /** What this process is working on. */
  readonly scratch: Scratch;
  readonly links: LinkSigner;
  readonly queue: OperationQueue;
  readonly worker: OperationWorker;
  readonly logger: Logger;
  readonly inspector: Inspector;
  /** Whom a token of Kilolock's stands for now; null when it is no longer active. */
  readonly readCredential: (token: TokenReference) => Promise<Principal | null>;
  readonly accesses: DownloadAccesses;
  /** What an archive may cost to read. */
  readonly limits: ArchiveLimits;
  /** Whose signatures count of an archive that is imported. */
  readonly trust: SignatureTrust;
  /** Signs what is exported; null: nobody does. */
  readonly signer: ArchiveSigner | null;
  /** age recipients that every export is encrypted for. */
  readonly recipients: readonly string[];
  /** What callers are sending at this moment. */
  readonly uploads: UploadsInFlight;
  /** How long a finished archive is kept. */
  readonly retentionSeconds: number;
}

/** Who asks, and in which request. */
export interface CallerRequest {
  readonly caller: Caller;
  /** Finds the request's line in the log. */
  readonly requestId: string;
  /** Aborts when the client goes away: what is done before there is an operation ends then. */
  readonly signal?: AbortSignal;
}

/** What an event says of who asked, beside the actor: enough to find the request, and why support acted. */
export function auditDetails({ caller, requestId }: CallerRequest): Readonly<Record<string, string>> {
  const { principal, supportReason } = caller;
  return {
    principal: principal.subject,
    request_id: requestId,
    ...(supportReason === null ? {} : { reason: supportReason }),
  };
}

const { name, version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
/** The software that writes archives, as they name it. */
export const TOOL: { readonly name: string; readonly version: string } = { name, version };
