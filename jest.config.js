import { availableParallelism } from 'node:os';

/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '<rootDir>/test/support/strip-types.js' },
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  testSequencer: '<rootDir>/test/support/longest-first.js',
  // More than there are cores: a quarter of the time a test waits, for PostgreSQL, another process or a limit that it tries.
  maxWorkers: Math.ceil(1.5 * availableParallelism()),
  // What a file loaded stays in its worker, and in time slows it down: a worker is good for some ten files.
  workerIdleMemoryLimit: '600MB',
  // Ends what hangs. No test is slow enough to meet it, however busy the machine.
  testTimeout: 600_000,
};
