import { SeededRandom } from '../history/seeded-random.ts';
import { percentile } from '../statistics.ts';

/**
 * @file The queue of operations by its rules, without a database: who asks it when, whom it gives what, what is put back for how
 * long. Time is counted in seconds, by events and not by a clock, and chance by a seed: the same figures each time.
 */

/** What is asked for, and who does it. */
export interface Scenario {
  readonly name: string;
  readonly operationsPerHour: number;
  readonly hours: number;
  /** Asked for at once at the beginning, one each of so many environments. */
  readonly atOnce: number;
  /** Asked for at once at the beginning, of one environment. */
  readonly ofOneEnvironment: number;
  readonly processes: number;
  /**
   * Who is told of an operation at the moment it is recorded: the process that recorded it, all of them by LISTEN, or nobody,
   * because those that serve do not work.
   */
  readonly told: 'own process' | 'all' | 'nobody';
}

/** What came of it. */
export interface Outcome {
  readonly operations: number;
  /** From being recorded to being begun. Of an environment that asked for no more than others. */
  readonly waitP50: number;
  readonly waitP99: number;
  readonly waitMax: number;
  /** When the last one had ended. */
  readonly overAfter: number;
  /** The share of all places that was taken, on the average. */
  readonly busy: number;
  readonly asksPerHour: number;
  readonly claimsPerHour: number;
  readonly putBackPerHour: number;
}

/** As in `operation-worker.ts`, `queue-schema.ts` and the defaults of the settings. */
const PLACES = 4;
const POLL_SECONDS = 2;
const MAX_PUT_BACK_SECONDS = 8;
const MAX_RUNNING_OF_ENVIRONMENT = 20;
/** What a claim takes, in vain or not. */
const CLAIM_SECONDS = 0.01;

export const ENVIRONMENTS = 10_000;
const STATES_EACH = 100;

interface Job {
  readonly recordedAt: number;
  readonly environment: number;
  readonly state: number;
  readonly workSeconds: number;
  readonly isOfTheMany: boolean;
  retryCount: number;
  startAfter: number;
}

export function runScenario(scenario: Scenario): Outcome {
  return new Simulation(scenario).run();
}

class Simulation {
  readonly #scenario: Scenario;
  readonly #random = new SeededRandom('scale');
  readonly #events = new Events();
  readonly #free: number[];
  /** In the order in which they were recorded. */
  #waiting: Job[] = [];
  readonly #runningStates = new Set<number>();
  readonly #runningOf = new Map<number, number>();
  readonly #waits: number[] = [];
  #now = 0;
  #left = 0;
  #busySeconds = 0;
  #overAfter = 0;
  readonly #counts = { operations: 0, asks: 0, claims: 0, putBack: 0 };

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#free = Array.from({ length: scenario.processes }, () => PLACES);
  }

  run(): Outcome {
    const { operationsPerHour, hours, atOnce, ofOneEnvironment, processes } = this.#scenario;
    for (let n = 0; n < atOnce; n += 1) this.#expect(0, n % ENVIRONMENTS, n % STATES_EACH, false);
    for (let n = 0; n < ofOneEnvironment; n += 1) this.#expect(0, 0, n, true);
    for (let at = this.#pause(operationsPerHour); at < hours * 3600; at += this.#pause(operationsPerHour)) {
      // Half of all is asked for by an eighth of the environments.
      const environment = Math.floor(ENVIRONMENTS * this.#share() ** 3);
      this.#expect(at, environment, Math.floor(STATES_EACH * this.#share() ** 3), false);
    }
    for (let process = 0; process < processes; process += 1) {
      this.#events.add(this.#share() * POLL_SECONDS, () => this.#poll(process));
    }
    for (let next = this.#events.next(); next !== undefined && this.#left > 0; next = this.#events.next()) {
      this.#now = next.at;
      next.happen();
    }
    const perHour = (count: number) => (count * 3600) / this.#overAfter;
    return {
      operations: this.#counts.operations,
      waitP50: percentile(this.#waits, 0.5),
      waitP99: percentile(this.#waits, 0.99),
      waitMax: percentile(this.#waits, 1),
      overAfter: this.#overAfter,
      busy: this.#busySeconds / (this.#overAfter * processes * PLACES),
      asksPerHour: perHour(this.#counts.asks),
      claimsPerHour: perHour(this.#counts.claims),
      putBackPerHour: perHour(this.#counts.putBack),
    };
  }

  #expect(at: number, environment: number, state: number, isOfTheMany: boolean): void {
    this.#left += 1;
    this.#counts.operations += 1;
    const job: Job = {
      recordedAt: at,
      environment,
      state: environment * 1_000_000 + state,
      workSeconds: this.#workSeconds(),
      isOfTheMany,
      retryCount: 0,
      startAfter: at,
    };
    this.#events.add(at, () => {
      this.#waiting.push(job);
      const { told, processes } = this.#scenario;
      if (told === 'own process') this.#take(this.#random.below(processes));
      if (told === 'all') for (let process = 0; process < processes; process += 1) this.#take(process);
    });
  }

  #poll(process: number): void {
    this.#take(process);
    this.#events.add(this.#now + POLL_SECONDS, () => this.#poll(process));
  }

  #take(process: number): void {
    const free = this.#free[process] ?? 0;
    if (free === 0) return;
    this.#counts.asks += 1;
    const taken = new Set<Job>();
    for (const job of this.#waiting) {
      if (job.startAfter <= this.#now) taken.add(job);
      if (taken.size === free) break;
    }
    if (taken.size === 0) return;
    this.#waiting = this.#waiting.filter((job) => !taken.has(job));
    this.#free[process] = free - taken.size;
    for (const job of taken) this.#events.add(this.#now + CLAIM_SECONDS, () => this.#claim(process, job));
  }

  #claim(process: number, job: Job): void {
    this.#counts.claims += 1;
    const running = this.#runningOf.get(job.environment) ?? 0;
    if (this.#runningStates.has(job.state) || running >= MAX_RUNNING_OF_ENVIRONMENT) {
      this.#counts.putBack += 1;
      job.retryCount += 1;
      const delay = (2 ** Math.min(16, job.retryCount) / 2) * (1 + this.#share());
      job.startAfter = this.#now + Math.min(MAX_PUT_BACK_SECONDS, delay);
      this.#waiting.push(job);
      this.#waiting.sort((a, b) => a.recordedAt - b.recordedAt);
      this.#leave(process);
      return;
    }
    if (!job.isOfTheMany) this.#waits.push(this.#now - job.recordedAt);
    this.#runningStates.add(job.state);
    this.#runningOf.set(job.environment, running + 1);
    this.#busySeconds += job.workSeconds;
    this.#events.add(this.#now + job.workSeconds, () => {
      this.#runningStates.delete(job.state);
      this.#runningOf.set(job.environment, (this.#runningOf.get(job.environment) ?? 1) - 1);
      this.#left -= 1;
      this.#overAfter = this.#now;
      this.#leave(process);
    });
  }

  #leave(process: number): void {
    this.#free[process] = (this.#free[process] ?? 0) + 1;
    this.#take(process);
  }

  /** As measured (docs/performance.md): small histories, one of ten with 200 versions of 1 MB, one of a hundred with 1000. */
  #workSeconds(): number {
    const kind = this.#random.below(100);
    if (kind === 0) return 20;
    return kind <= 10 ? 4 : 0.3;
  }

  /** A number from 0 to 1. */
  #share(): number {
    return this.#random.below(2 ** 30) / 2 ** 30;
  }

  /** Until the next one is asked for, in seconds, when so many are in an hour. */
  #pause(perHour: number): number {
    return perHour === 0 ? Number.POSITIVE_INFINITY : (-Math.log(1 - this.#share()) * 3600) / perHour;
  }
}

interface Event {
  readonly at: number;
  readonly happen: () => void;
}

/** What is going to happen, the next first: a heap. */
class Events {
  readonly #heap: Event[] = [];

  add(at: number, happen: () => void): void {
    const heap = this.#heap;
    const event = { at, happen };
    let place = heap.push(event) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || above.at <= at) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = event;
  }

  next(): Event | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let place = 0;
    for (;;) {
      const [left, right] = [heap[2 * place + 1], heap[2 * place + 2]];
      if (left === undefined) break;
      const isRight = right !== undefined && right.at < left.at;
      const child = isRight ? right : left;
      if (child.at >= last.at) break;
      heap[place] = child;
      place = 2 * place + (isRight ? 2 : 1);
    }
    heap[place] = last;
    return first;
  }
}
