import type fc from 'fast-check';

/** Something of the service that takes what strangers send, and what must hold whatever they send. */
export interface FuzzTarget<Input> {
  readonly name: string;
  /** Inputs at random; what fast-check makes smaller has to stay an input. */
  readonly inputs: fc.Arbitrary<Input>;
  /** An input as a file of the corpus, which outlives changes of what makes inputs. */
  encode(input: Input): Uint8Array;
  decode(file: Buffer): Input;
  /** How many inputs the suite tries each time: a few seconds. */
  readonly runsInSuite: number;
  /** Prepares what the inputs are put to. */
  open(): Promise<FuzzSubject<Input>>;
}

export interface FuzzSubject<Input> {
  /** Puts an input to the service; throws when something was answered, written or logged that must not be. */
  check(input: Input): Promise<void>;
  close(): Promise<void>;
}

/** The most processor time that one small input may take, in seconds: far more than any does, far less than a hang. */
const MAX_CPU_SECONDS = 10;

/** Runs a check, and fails when it takes so much of the processor that a stranger could stop the service with it. */
export async function withinCpuTime(check: () => Promise<void>): Promise<void> {
  const before = process.cpuUsage();
  await check();
  const { user, system } = process.cpuUsage(before);
  const seconds = (user + system) / 1e6;
  if (seconds > MAX_CPU_SECONDS) throw new Error(`It took ${seconds.toFixed(1)} s of the processor.`);
}
