import type { Logger } from 'pino';
import { describeError } from './error-log.ts';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Has a signal end the process by its exit handlers: without a listener it would pass them over. */
export function exitOnSignal(): void {
  for (const signal of SIGNALS) process.on(signal, exitAtOnce);
}

function exitAtOnce(): void {
  process.exit(1);
}

/** From here on the first signal shuts the process down; a second one does not wait for that. */
export function shutDownOnSignal(close: () => Promise<void>, logger: Logger): void {
  const shutDown = async (signal: NodeJS.Signals) => {
    for (const each of SIGNALS) process.off(each, shutDown).on(each, exitAtOnce);
    logger.info({ signal }, 'shutting down');
    try {
      await close();
    } catch (error) {
      logger.fatal({ error: describeError(error) }, 'shutting down failed');
      process.exit(1);
    }
    // Connections of clients that stand still would keep the process.
    process.exit();
  };
  for (const signal of SIGNALS) process.off(signal, exitAtOnce).on(signal, shutDown);
}
