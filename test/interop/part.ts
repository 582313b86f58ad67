import type { ProgramName } from './programs.ts';
import type { Stage } from './stage.ts';

/** Some checks on one subject. */
export interface Part {
  /** What `--only` calls it. */
  readonly name: string;
  /** What the checks are about. */
  readonly title: string;
  /** Without one of these programs beside kld the part is skipped. */
  readonly needs: readonly ProgramName[];
  /** The parts whose states it goes on with. */
  readonly after: readonly Part[];
  /** Throws when it cannot go on. */
  readonly run: (stage: Stage) => Promise<void>;
}
