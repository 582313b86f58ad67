import { COMPILE_CACHE } from './compile-cache.ts';
import { startTestServer } from './test-server.ts';

/** Starts the server of the test run; jest runs this once, before its test processes. */
export default async function globalSetup(): Promise<void> {
  // Without listeners a signal ends the process past its exit handlers, and the server would stay behind.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
  // Each service that a test starts has threads, and they load what those of the test before have compiled.
  Object.assign(process.env, COMPILE_CACHE);
  const server = await startTestServer();
  process.env.STATE_ARCHIVE_TEST_SERVER = JSON.stringify(server.address);
  globalThis.stopTestServer = () => server.stop();
}

declare global {
  var stopTestServer: (() => Promise<void>) | undefined;
}
