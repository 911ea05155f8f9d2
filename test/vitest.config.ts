import { defineConfig } from 'vitest/config';
import { SummaryReporter } from './support/summary-reporter.ts';

/** Tests use real parts (Redis, sockets, processes), so each has a generous limit and none asserts a time. */
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    tags: [
      { name: 'full', description: 'Only in `npm run test:rest`: see README.md, "Which test runs when".' },
    ],
    globalSetup: ['test/support/redis-global-setup.ts'],
    reporters: ['default', new SummaryReporter()],
    // The default reporter lists slow tests, of which there are hundreds. The ten slowest files are listed at the end.
    slowTestThreshold: 30_000,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    pool: 'forks',
    // Processes that tests start read what an earlier one compiled: starting one costs half of the CPU time.
    env: { NODE_COMPILE_CACHE: new URL('../node_modules/.cache/compiled', import.meta.url).pathname },
    // Half of the time tests wait. With as many as cores they left the cores idle for a third of the time.
    maxWorkers: 5,
  },
});
