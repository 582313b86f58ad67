import type { Group } from '../group.ts';
import type { Table } from '../report.ts';
import { runScenario, type Scenario } from '../scale/queue-model.ts';
import { fill, measure, type Size } from '../scale/statements.ts';

const FULL: Size = {
  workspaces: 1_000,
  environmentsEach: 10,
  statesEach: 100,
  ended: 1_000_000,
  waiting: 10_000,
};
const QUICK: Size = { workspaces: 100, environmentsEach: 10, statesEach: 20, ended: 50_000, waiting: 1_000 };

const DAY: Scenario = {
  name: '1 000 an hour for a day, each begun by its own process',
  operationsPerHour: 1_000,
  hours: 24,
  atOnce: 0,
  ofOneEnvironment: 0,
  processes: 2,
  told: 'own process',
};
const NIGHT: Scenario = { ...DAY, hours: 0.25 };

const SCENARIOS: readonly Scenario[] = [
  DAY,
  { ...DAY, name: 'the same, where those that serve do not work', told: 'nobody' },
  { ...DAY, name: 'the same, with DATABASE_DIRECT_URL', told: 'all' },
  { ...DAY, name: '10 000 an hour', operationsPerHour: 10_000, hours: 4 },
  { ...DAY, name: '25 000 an hour', operationsPerHour: 25_000, hours: 4 },
  { ...DAY, name: '25 000 an hour, 4 processes', operationsPerHour: 25_000, hours: 4, processes: 4 },
  { ...NIGHT, name: '10 000 exports at once, one of each environment', atOnce: 10_000 },
  { ...NIGHT, name: 'the same, 10 processes', atOnce: 10_000, processes: 10 },
  { ...NIGHT, name: '1 000 exports at once, all of one environment', ofOneEnvironment: 1_000 },
  { ...NIGHT, name: 'the same, 10 processes', ofOneEnvironment: 1_000, processes: 10 },
];

/** What 10 000 environments with a million states and a million operations behind them cost, and how long an operation waits. */
export const scale: Group = {
  name: 'scale',
  minutes: { full: 5, quick: 1 },
  async run({ server, quick, tell }) {
    const size = quick ? QUICK : FULL;
    const database = await server.createDatabase('scale');
    await fill(database, size, tell);
    tell('statements');
    const rounds = quick ? 30 : 300;
    const costs = await measure(database, size, rounds);
    const [table] = await database.query<{ rows: string; indexes: string }>(
      `select pg_table_size('state_archive.operation')::text as rows, pg_indexes_size('state_archive.operation')::text as indexes`,
    );
    const each = (bytes = '') => `${Math.round(Number(bytes) / size.ended)} bytes`;
    await database.drop();
    const environments = size.workspaces * size.environmentsEach;
    const statements: Table = {
      title: `What is asked of the database with ${count(environments * size.statesEach)} states of ${count(environments)} environments`,
      head: ['step', 'median', 'p99', 'statements', 'pages'],
      rows: costs.map(({ step, medianMs, p99Ms, statements, pages }) => [
        step,
        `${medianMs.toFixed(2)} ms`,
        `${p99Ms.toFixed(2)} ms`,
        statements === null ? '' : String(statements),
        pages === null ? '' : String(pages),
      ]),
      notes: [
        `${count(size.ended)} operations have ended, ${count(size.waiting)} wait. One step at a time, ${rounds} of each, in an environment chosen at random each time; pages of 8 KiB that PostgreSQL looked at, once. The record of an operation takes ${each(table?.rows)}, and ${each(table?.indexes)} in its indexes.`,
      ],
    };
    tell('the queue');
    return [statements, modelled()];
  },
};

function modelled(): Table {
  return {
    title: 'How long operations wait, by the rules of the queue',
    head: [
      'asked for',
      'operations',
      'wait, median',
      'p99',
      'longest',
      'places taken',
      'asks of the queue an hour',
      'put back an hour',
      'over after',
    ],
    rows: SCENARIOS.map((scenario) => {
      const { operations, waitP50, waitP99, waitMax, busy, asksPerHour, putBackPerHour, overAfter } =
        runScenario(scenario);
      return [
        scenario.name,
        count(operations),
        seconds(waitP50),
        seconds(waitP99),
        seconds(waitMax),
        `${(100 * busy).toFixed(0)} %`,
        count(Math.round(asksPerHour)),
        count(Math.round(putBackPerHour)),
        scenario.hours < 1 ? seconds(overAfter) : '',
      ];
    }),
    notes: [
      'Simulated, by events: two processes of four places unless told otherwise. An operation takes 0.3 s, one of ten 4 s, one of a hundred 20 s. Waits are those of the environments that asked for no more than others.',
    ],
  };
}

function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ' ');
}

function seconds(number: number): string {
  return `${number.toFixed(number < 10 ? 2 : 0)} s`;
}
