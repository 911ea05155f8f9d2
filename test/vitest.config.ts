import { defineConfig } from 'vitest/config';

/** Tests use real parts (Redis, sockets, processes), so each has a generous limit and none asserts a time. */
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/redis-global-setup.ts'],
    // On a starved machine a scenario can miss its stage (a window ends too early, a state is passed over); its
    // assertions stay as they are, and a test that passes only at the second try is reported as such.
    retry: 2,
    testTimeout: 30_000,
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
