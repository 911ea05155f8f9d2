import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { SummaryReporter } from './support/summary-reporter.ts';

// Workers, and the processes that tests start, share compiled code. Compilation is half of the CPU time of a start.
process.env.NODE_COMPILE_CACHE = new URL('../node_modules/.cache/compiled', import.meta.url).pathname;

/** These files replace modules or measure the heap, so each needs a worker of its own. */
const filesAlone = [
  'test/integration/broken-gateways.test.ts',
  'test/**/bugs*.test.ts',
  'test/request/listen/listener.test.ts',
  'test/shared/structures/renewed-map.test.ts',
  'test/usage/record/key-usage.test.ts',
];

/** Files that `run.ts` leaves out. */
const exclude = [...configDefaults.exclude, ...(process.env.EXCLUDED_TESTS?.split(' ') ?? [])];

/** Small files with long tests. By default Vitest starts the largest files first, so these files would run alone at the end. */
const filesFirst = [
  'test/request/limit/cluster.test.ts',
  'test/integration/drain.test.ts',
  'test/integration/slow-clients.test.ts',
  'test/request/limit/slow-store.test.ts',
  'test/request/limit/outage.test.ts',
  'test/integration/web-socket-keys.test.ts',
  'test/integration/exactness.test.ts',
  'test/integration/targets.test.ts',
  'test/fuzz/fuzz.test.ts',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isFirst = ({ moduleId }: TestSpecification) => filesFirst.some((file) => moduleId.endsWith(file));
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))];
  }
}

/**
 * Tests use real parts (Redis, sockets, processes). Each test has a long timeout, and no test asserts a duration.
 */
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
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
    // Tests spend half of their time waiting, so there are more workers than cores. With one worker per core, the cores were idle for a
    // third of the time.
    maxWorkers: 6,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: 'tests',
          include: ['test/**/*.test.ts'],
          // `npm run bench` installs packages with test files into `test/bench/node_modules`.
          exclude: [...exclude, ...filesAlone],
          globalSetup: [],
          // A worker runs one file after the other and imports each module once, as Node itself does.
          isolate: false,
          experimental: { viteModuleRunner: false, nodeLoader: false },
        },
      },
      { extends: true, test: { name: 'alone', include: filesAlone, exclude, globalSetup: [] } },
    ],
  },
});
