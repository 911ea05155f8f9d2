import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Results of the contract test suites, for one form of Redis. */
export interface Contracts {
  /** The number of passed tests for counts, for the usage record, for the key directory, and for the shared process lists. */
  readonly held: Readonly<Record<(typeof suites)[number], number>>;
  /** The number of limiters with a deliberate mistake, and the number of these limiters that the tests rejected. */
  readonly mutants: number;
  readonly caught: number;
  readonly failed: readonly string[];
}

const suites = ['contract', 'usage', 'keys/directory', 'fleet'] as const;
const files = [
  'test/contract/quota-store.test.ts',
  'test/contract/broken-limiters.test.ts',
  'test/usage/store/usage-store.test.ts',
  'test/keys/directory/directory-store.test.ts',
  'test/fleet/shared-list.test.ts',
  'test/fleet/redis-forms.test.ts',
];
const root = new URL('../..', import.meta.url).pathname;

interface JsonReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

let report: Promise<JsonReport> | undefined;

/** @param form `one server`, `a Cluster` or `Sentinel`, as in the names of the tests */
export async function measureContracts(form: string): Promise<Contracts> {
  report ??= runSuites();
  const { testResults } = await report;
  const held = { contract: 0, usage: 0, 'keys/directory': 0, fleet: 0 };
  let [mutants, caught] = [0, 0];
  const failed: string[] = [];
  for (const { name, assertionResults } of testResults) {
    const suite = suites.find((one) => name.includes(`/test/${one}/`));
    for (const { fullName, status } of assertionResults) {
      if (suite === undefined || !new RegExp(`\\b${form}\\b`).test(fullName)) continue;
      const hasPassed = status === 'passed';
      if (!hasPassed) failed.push(fullName);
      if (fullName.includes('catches a limiter')) {
        mutants += 1;
        if (hasPassed) caught += 1;
      } else if (hasPassed) held[suite] += 1;
    }
  }
  return { held, mutants, caught, failed };
}

/** Runs the suites once, on all forms of Redis. All measurements use the report of this run. */
async function runSuites(): Promise<JsonReport> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-contracts-'));
  const file = join(folder, 'report.json');
  const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');
  const args = ['--config', 'test/vitest.config.ts', '--reporter=json', `--outputFile=${file}`];
  try {
    const child = spawn(process.execPath, [vitest, 'run', ...args, ...files], { cwd: root, stdio: 'ignore' });
    await once(child, 'exit');
    return JSON.parse(await readFile(file, 'utf8'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
