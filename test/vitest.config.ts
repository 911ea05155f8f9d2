import { defineConfig } from 'vitest/config';
import { SummaryReporter } from './support/summary-reporter.ts';

/**
 * Tests use real parts (Redis, sockets, processes). Each test has a generous time limit, and no test asserts a time.
 */
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    tags: [
      { name: 'full', description: 'Only in `npm run test:rest`: see README.md, "Which test runs when".' },
    ],
    globalSetup: ['test/support/redis-global-setup.ts'],
    reporters: ['default', new SummaryReporter()],
    // The default reporter would list hundreds of slow tests. The summary lists the ten slowest files.
    slowTestThreshold: 30_000,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    pool: 'forks',
    // Processes that tests start share compiled code. Compiling is half of the CPU time of a start.
    env: { NODE_COMPILE_CACHE: new URL('../node_modules/.cache/compiled', import.meta.url).pathname },
    // Tests wait half of the time. With one worker per core the cores were idle for a third of the time.
    maxWorkers: 5,
  },
});
