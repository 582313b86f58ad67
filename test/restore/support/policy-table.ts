import type { KilolockDatabase } from '../../../src/database/connection.ts';
import type { Caller } from '../../../src/history/states.ts';
import type { ImportRequest } from '../../../src/operations/import-state-archive.ts';
import { createEnvironment } from '../../operations/support/backend.ts';
import {
  OTHER_LINEAGE,
  type StandingState,
  setLifecycle,
  setToWork,
  standHistory,
  standRow,
  type WORK,
} from './destinations.ts';
import { SMALL_LINEAGE } from './histories.ts';

/** The label the archive of the table was taken from, and is restored under unless the mode says otherwise. */
export const LABEL = 'team/app';

const PLACED = ['CREATED', 'ARCHIVED_COPY', 'REPLACED'] as const;

/** How the history is placed, or the code it is refused with. */
export type Outcome =
  | (typeof PLACED)[number]
  | 'CONFIRMATION_MISMATCH'
  | 'LINEAGE_IN_USE'
  | 'STALE_DESTINATION'
  | 'STATE_ALREADY_EXISTS'
  | 'STATE_LOCKED'
  | 'STATE_NOT_ACTIVE'
  | 'STATE_NOT_FOUND';

export function isPlaced(outcome: string): boolean {
  return PLACED.some((placed) => placed === outcome);
}

interface Mode {
  /** As the page prints it. */
  readonly title: string;
  input(standing: StandingState | null): Partial<ImportRequest>;
}

const overwrite = (confirmName: string, expectedCurrentSerial: bigint | null): Partial<ImportRequest> => ({
  onConflict: { kind: 'OVERWRITE', confirmName, expectedCurrentSerial },
});

/** What a caller can ask for, in the order of the columns. */
export const MODES: readonly Mode[] = [
  { title: '`REFUSE`', input: () => ({}) },
  { title: '`REFUSE`, `allowSharedLineage`', input: () => ({ allowSharedLineage: true }) },
  { title: '`REFUSE`, another `name`', input: () => ({ label: 'team/app-restored' }) },
  { title: '`ARCHIVED_COPY`', input: () => ({ onConflict: { kind: 'ARCHIVED_COPY' } }) },
  {
    title: '`OVERWRITE`, confirmed',
    input: (standing) => overwrite(LABEL, standing?.currentSerial ?? null),
  },
  {
    title: '`OVERWRITE`, another `confirmName`',
    input: (standing) => overwrite('team/App', standing?.currentSerial ?? null),
  },
  { title: '`OVERWRITE`, another `expectedCurrentSerial`', input: () => overwrite(LABEL, 99n) },
];

interface Situation {
  /** As the page prints it. */
  readonly title: string;
  /** Brings it about; returns the state that has the name, when there is one. */
  arrange(database: KilolockDatabase, caller: Caller): Promise<StandingState | null>;
  /** One for each of {@link MODES}. */
  readonly outcomes: readonly Outcome[];
}

const standing = (lineage?: string) => (database: KilolockDatabase, caller: Caller) =>
  standHistory(database, caller, LABEL, lineage);

const inStatus = (status: 'suspended' | 'archived') => async (database: KilolockDatabase, caller: Caller) => {
  const state = await standHistory(database, caller, LABEL);
  await setLifecycle(database, state.id, status);
  return state;
};

const namesake = (lineage: string | null) => async (database: KilolockDatabase, caller: Caller) => {
  await standRow(database, caller, `${LABEL}--archived-brave-otter-3f`, { status: 'archived', lineage });
  return null;
};

const atWork = (work: keyof typeof WORK) => async (database: KilolockDatabase, caller: Caller) => {
  const state = await standHistory(database, caller, LABEL);
  await setToWork(database, state.id, work);
  return state;
};

/** The outcomes for a name that nobody has, when only the archive's lineage or an archived namesake may stand against it. */
const freeName = (asIs: Outcome, sharing: Outcome, renamed: Outcome): readonly Outcome[] => [
  asIs,
  sharing,
  renamed,
  'ARCHIVED_COPY',
  'STATE_NOT_FOUND',
  'CONFIRMATION_MISMATCH',
  'STATE_NOT_FOUND',
];

/** The outcomes for a name that is taken. */
const takenName = (
  overwritten: Outcome,
  { renamed = 'CREATED', stale = 'STALE_DESTINATION' }: { renamed?: Outcome; stale?: Outcome } = {},
): readonly Outcome[] => [
  'STATE_ALREADY_EXISTS',
  'STATE_ALREADY_EXISTS',
  renamed,
  'ARCHIVED_COPY',
  overwritten,
  'CONFIRMATION_MISMATCH',
  stale,
];

/** What can stand at a destination, and what comes of it. The page docs/restore.md prints this table. */
export const SITUATIONS: readonly Situation[] = [
  {
    title: 'the name is free',
    arrange: async () => null,
    outcomes: freeName('CREATED', 'CREATED', 'CREATED'),
  },
  {
    title: 'taken by an active state with a history',
    arrange: standing(),
    outcomes: takenName('REPLACED'),
  },
  {
    title: 'taken by an active state of the same lineage',
    arrange: standing(SMALL_LINEAGE),
    outcomes: takenName('REPLACED', { renamed: 'LINEAGE_IN_USE' }),
  },
  {
    title: 'taken by an empty state, such as a lock leaves behind',
    arrange: (database, caller) => standRow(database, caller, LABEL),
    outcomes: takenName('REPLACED'),
  },
  {
    title: 'taken by a suspended state',
    arrange: inStatus('suspended'),
    outcomes: takenName('STATE_NOT_ACTIVE', { stale: 'STATE_NOT_ACTIVE' }),
  },
  {
    title: 'taken by an archived state',
    arrange: inStatus('archived'),
    outcomes: takenName('STATE_NOT_ACTIVE', { stale: 'STATE_NOT_ACTIVE' }),
  },
  {
    title: 'free, but an archived state of the same lineage had it',
    arrange: namesake(SMALL_LINEAGE),
    outcomes: freeName('STATE_ALREADY_EXISTS', 'STATE_ALREADY_EXISTS', 'CREATED'),
  },
  {
    title: 'free, but an archived state of no known lineage had it',
    arrange: namesake(null),
    outcomes: freeName('STATE_ALREADY_EXISTS', 'STATE_ALREADY_EXISTS', 'CREATED'),
  },
  {
    title: 'free, and an archived state of another lineage had it',
    arrange: namesake(OTHER_LINEAGE),
    outcomes: freeName('CREATED', 'CREATED', 'CREATED'),
  },
  {
    title: 'free, but another active state of the environment has the lineage',
    arrange: async (database, caller) => {
      await standHistory(database, caller, 'team/twin', SMALL_LINEAGE);
      return null;
    },
    outcomes: freeName('LINEAGE_IN_USE', 'CREATED', 'LINEAGE_IN_USE'),
  },
  {
    title: 'free, and an active state of another environment has the lineage',
    arrange: async (database, caller) => {
      const neighbour = await createEnvironment({ database }, caller.namespace.workspace);
      await standHistory(database, neighbour, LABEL, SMALL_LINEAGE);
      return null;
    },
    outcomes: freeName('CREATED', 'CREATED', 'CREATED'),
  },
  {
    title: 'taken by an active state, and another one has the lineage',
    arrange: async (database, caller) => {
      await standHistory(database, caller, 'team/twin', SMALL_LINEAGE);
      return standHistory(database, caller, LABEL);
    },
    outcomes: takenName('LINEAGE_IN_USE', { renamed: 'LINEAGE_IN_USE' }),
  },
  { title: 'taken by a locked state', arrange: atWork('lock'), outcomes: takenName('STATE_LOCKED') },
  {
    title: 'taken by a state with a running apply',
    arrange: atWork('runningApply'),
    outcomes: takenName('STATE_LOCKED'),
  },
  {
    title: 'taken by a state with a running refresh',
    arrange: atWork('runningRefresh'),
    outcomes: takenName('STATE_LOCKED'),
  },
  {
    title: 'taken by a state with reserved resources',
    arrange: atWork('reservation'),
    outcomes: takenName('STATE_LOCKED'),
  },
  {
    title: 'taken by a state with a reservation that ran out',
    arrange: atWork('expiredReservation'),
    outcomes: takenName('REPLACED'),
  },
  {
    title: 'taken by a state with a finished apply',
    arrange: atWork('finishedApply'),
    outcomes: takenName('REPLACED'),
  },
  {
    title: 'taken by a state with a finished refresh',
    arrange: atWork('finishedRefresh'),
    outcomes: takenName('REPLACED'),
  },
];

/** The table as the page prints it. */
export function renderPolicyTable(): string {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [
    row(['the name is …', ...MODES.map(({ title }) => title)]),
    row(['---', ...MODES.map(() => '---')]),
    ...SITUATIONS.map(({ title, outcomes }) =>
      row([
        title.replace(/^the name is /, ''),
        ...outcomes.map((outcome) => (isPlaced(outcome) ? `**${outcome}**` : outcome)),
      ]),
    ),
    '',
  ].join('\n');
}
