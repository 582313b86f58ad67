import type { BenchServer } from './databases.ts';
import type { Histories } from './histories.ts';
import type { Table } from './report.ts';

/** What a group of measurements works with. */
export interface Bench {
  readonly server: BenchServer;
  readonly histories: Histories;
  /** For files that nobody needs afterwards. */
  readonly directory: string;
  /** Small histories and few repetitions: shows that everything works, and roughly how fast. */
  readonly quick: boolean;
  /** Whether a part of the group is wanted. */
  wants(part: string): boolean;
  /** Tells whoever waits what is being done. */
  tell(what: string): void;
}

/** Measurements that are made together. */
export interface Group {
  readonly name: string;
  /** What can be asked for alone, `name/part`. */
  readonly parts?: readonly string[];
  /** How long it takes on two cores, in minutes. */
  readonly minutes: { readonly full: number; readonly quick: number };
  /** Measures. What the service fails at is part of the tables; what it throws is a fault of the bench. */
  run(bench: Bench): Promise<Table[]>;
}
