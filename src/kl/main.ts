import { EXIT } from './endings.ts';
import { run } from './program.ts';

/** @file `kl`: takes histories home, brings them back, and looks into the files; docs/kl.md. */

// Whoever read the result went away.
process.stdout.on('error', () => process.exit(EXIT.failed));
process.exitCode = await run(process.argv.slice(2));
