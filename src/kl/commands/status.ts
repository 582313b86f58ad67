import { isUuid } from '../../base/uuid.ts';
import type { CommonOptions, Context } from '../context.ts';
import { DOCUMENTS, type ImportAnswer, type OperationAnswer, type StateAnswer } from '../documents.ts';
import { EXIT, type Exit, endingOf } from '../endings.ts';
import { isGoingOn } from '../operations.ts';
import { connect, type Service } from '../service.ts';
import { matchingStates, notFound } from '../states.ts';
import { pairs, table } from '../tables.ts';
import { bytesText, visible } from '../texts.ts';

interface Options extends CommonOptions {
  readonly watch?: boolean;
}

const WATCH_MS = 2_000;

/** `kl status`: every state, one state, or one operation. */
export async function run(context: Context, options: Options, what: string | undefined): Promise<Exit> {
  const { terminal } = context;
  const service = await connect(context);
  let before = '';
  for (;;) {
    const { value, text, operation } = await look(service, what);
    // Of what is watched, only what is new is said.
    if (text !== before) terminal.result(value, () => text);
    before = text;
    if (!options.watch || (operation && !isGoingOn(operation))) {
      return operation?.error ? endingOf(operation.error.code).exit : EXIT.done;
    }
    await service.pause(WATCH_MS);
  }
}

/** What is to be shown; the operation, where it is one: nothing else ends by itself. */
async function look(service: Service, what: string | undefined) {
  if (what === undefined) return { ...(await allStates(service)), operation: null };
  const operation = isUuid(what) ? await service.ask(DOCUMENTS.operation, { id: what }) : null;
  if (operation !== null) return { value: operation, text: operationText(operation), operation };
  const state = await service.ask(DOCUMENTS.state, { name: what });
  if (state === null) throw notFound(what);
  return { value: stateValue(state), text: stateText(state), operation };
}

async function allStates(service: Service) {
  const states: StateAnswer[] = [];
  for await (const state of matchingStates(service, '*')) states.push(state);
  const text =
    states.length === 0
      ? 'There is no state that this credential may see.'
      : table(states, {
          STATE: 'name',
          VERSIONS: ({ status }) => status.versionCount,
          SERIAL: ({ manifest }) => manifest?.currentSerial,
          'LOCKED BY': ({ status }) => status.lockedBy,
          'LAST EXPORT': ({ status }) => status.lastExport?.finishedAt,
          'SINCE THEN': sinceText,
        });
  return { value: states.map(stateValue), text };
}

/** Whether the history is another than that of its last export; null where nobody can tell. */
function changedSinceExport({ status, manifest }: StateAnswer): boolean | null {
  const digest = status.lastExport?.archive?.historyDigest;
  return digest === undefined || manifest === null ? null : digest !== manifest.historyDigest;
}

function sinceText(state: StateAnswer): string | null {
  const changed = changedSinceExport(state);
  if (changed === null) return state.status.exportable ? 'never exported' : 'nothing to export';
  return changed ? 'CHANGED' : 'unchanged';
}

function stateValue(state: StateAnswer) {
  return { ...state, changedSinceLastExport: changedSinceExport(state) };
}

function stateText(state: StateAnswer): string {
  const { name, lineage, lifecycleStatus, status, manifest } = state;
  return pairs({
    State: name,
    Lineage: lineage,
    Lifecycle: lifecycleStatus,
    Exportable: status.exportable ? 'yes' : 'no: it has no version yet',
    'Locked by': status.lockedBy,
    Versions: status.versionCount,
    'Current serial': manifest?.currentSerial,
    'Raw states': manifest && bytesText(BigInt(manifest.rawBytes)),
    Tags: manifest?.tagCount,
    'History digest': manifest?.historyDigest,
    'Last export': operationLine(status.lastExport),
    'Since then': sinceText(state),
    'Last import': operationLine(status.lastImport),
  });
}

function operationLine(operation: OperationAnswer | null): string | null {
  return operation && `${operation.finishedAt} by ${operation.actor} (${operation.id})`;
}

/** An operation, for people. */
export function operationText(operation: ImportAnswer): string {
  const { kind, progress, archive, error } = operation;
  const { versionsDone, versionsTotal, bytesDone, bytesTotal } = progress;
  const of = (total: string | number | null) => (total === null ? '' : ` of ${total}`);
  const lines = pairs({
    Operation: operation.id,
    Kind: kind,
    State: operation.name,
    Status: operation.status,
    Versions: `${versionsDone}${of(versionsTotal)}`,
    'Raw states': `${bytesText(BigInt(bytesDone))}${of(bytesTotal && bytesText(BigInt(bytesTotal)))}`,
    'Asked for': `${operation.createdAt} by ${operation.actor}`,
    Ended: operation.finishedAt,
    'Kept until': kind === 'EXPORT' ? operation.expiresAt : undefined,
    'History digest': archive?.historyDigest,
    File: archive && `${archive.fileName}, ${bytesText(BigInt(archive.sizeBytes))}`,
    Outcome: operation.report?.outcome,
    Error: error?.code,
  });
  return error === null ? lines : `${lines}\n\n${visible(error.message)}`;
}
