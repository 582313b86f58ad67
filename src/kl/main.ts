import { EXIT } from './endings.ts';
import { run } from './program.ts';

/** @file `kl`: takes histories home, brings them back, and looks into the files; docs/kl.md. */

// Asks for the progress, where there is any; without a listener Node.js opens a debugger.
process.on('SIGUSR1', () => {});
// Whoever read the result went away.
process.stdout.on('error', () => process.exit(EXIT.failed));
process.exitCode = await run(process.argv.slice(2));
