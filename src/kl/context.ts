import { failure, type KlError } from './endings.ts';
import type { Terminal } from './terminal.ts';

/** What every command is given. */
export interface Context {
  readonly terminal: Terminal;
  /** Given when somebody interrupts; its reason is the error to end with. */
  readonly signal: AbortSignal;
  /** The file with the keys of encrypted archives; null: there is none. */
  readonly identity: string | null;
  /** Where in the service, if not where the credential is at home. */
  readonly elsewhere: Pick<CommonOptions, 'workspace' | 'environment' | 'reason'>;
}

/** The options that commands have in common. */
export interface CommonOptions {
  readonly format?: 'table' | 'json';
  readonly quiet?: boolean;
  /** Of the commands that talk to the service. */
  readonly workspace?: string;
  readonly environment?: string;
  readonly reason?: string;
  /** Of the commands that read archives. */
  readonly identity?: string;
}

/** What the options of a command amount to. */
export async function contextOf(
  { format = 'table', quiet = false, identity, ...elsewhere }: CommonOptions,
  signal: AbortSignal,
): Promise<Context> {
  // Help is given without it.
  const { Terminal } = await import('./terminal.ts');
  return {
    terminal: new Terminal({ format, quiet }),
    signal,
    identity: identity ?? (process.env.KL_AGE_IDENTITY || null),
    elsewhere,
  };
}

/**
 * The interruption of this process: SIGINT, SIGTERM or SIGHUP call off what is at work, and a second one ends the process
 * as it stands.
 */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  const interrupted: KlError = failure('INTERRUPTED', 'Interrupted.');
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(interrupted.exit);
      controller.abort(interrupted);
    });
  }
  return controller.signal;
}
