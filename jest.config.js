/** @type {import('jest').Config} */
export default {
  testEnvironment: 'node',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '<rootDir>/test/support/strip-types.js' },
  globalSetup: '<rootDir>/test/support/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/global-teardown.ts',
  // Half of a test's work is PostgreSQL's: with one core kept free, as Jest does by itself, one would stand idle.
  maxWorkers: '100%',
  // What a file loaded stays in its worker, and in time slows it down: a worker is good for some ten files.
  workerIdleMemoryLimit: '600MB',
  // Ends what hangs. No test is slow enough to meet it, however busy the machine.
  testTimeout: 600_000,
};
