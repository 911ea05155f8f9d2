import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/**
 * Runs `npm test`: type check, lint and the everyday tests, all at the same time. The argument `unit` runs only the everyday tests (`npm
 * run unit`). The argument `rest` runs the proofs that each capability can be deleted, and then the full-size tests (`npm run
 * test:rest`). Further arguments select the test files whose path contains one of them, and nothing else then runs. The exit code is 1 when
 * any part fails.
 */
async function run(args: readonly string[]): Promise<void> {
  const startedMs = performance.now();
  // Vitest would import each file whose tests all have full size, and everything that the file tests, only to skip the tests.
  if (args[0] !== 'rest') process.env.EXCLUDED_TESTS = testFilesWith(/^ \* @module-tag full$/m).join(' ');
  const isGood = (await Promise.all(partsOf(args))).every(Boolean);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  console.log(`\n${isGood ? 'All good' : 'Failed'} after ${seconds} s.`);
  process.exitCode = isGood ? 0 : 1;
}

function partsOf(args: readonly string[]): Promise<boolean>[] {
  const [part, ...filters] = args;
  if (part === 'unit') return [runTests([...everyday, ...filters])];
  if (part === 'rest' && filters.length > 0) return [runTests([...full, ...filters])];
  if (part === 'rest') return [fullSizeAndDeletions()];
  return [checked('check'), checked('lint'), runTests([...everyday, ...args])];
}

const everyday = ['--tagsFilter', '!full'];
const full = ['--tagsFilter', 'full'];

/**
 * Runs the proofs that each capability can be deleted, and then the full-size tests, because each of them needs all cores. The output ends
 * with what failed, because a CI often shows only the end.
 */
async function fullSizeAndDeletions(): Promise<boolean> {
  const proofs = await runCommand(process.execPath, ['test/deletion/run.ts'], ['inherit', 'pipe']);
  const isGood = await runTests([...full, ...filesOfFullSize()]);
  if (!proofs.isGood) console.log(`\nA proof of deletion failed.\n${proofs.output}`);
  return proofs.isGood && isGood;
}

/** Only these files are imported, because a search of all files for the tag takes a minute. */
function filesOfFullSize(): string[] {
  return testFilesWith(/\btags: (.*'full'|tagsOf\()|^ \* @module-tag full$/m);
}

function testFilesWith(text: RegExp): string[] {
  return readdirSync('test', { recursive: true, encoding: 'utf8' })
    .map((name) => join('test', name))
    .filter((file) => file.endsWith('.test.ts') && text.test(readFileSync(file, 'utf8')));
}

async function runTests(args: readonly string[]): Promise<boolean> {
  const vitest = ['vitest', 'run', '--config', 'test/vitest.config.ts'];
  return (await runCommand('npx', [...vitest, ...args], ['inherit', 'inherit'])).isGood;
}

/** Prints the output of a check after the check has ended, so that its lines do not mix with the lines of the tests. */
async function checked(script: string): Promise<boolean> {
  const { isGood, output } = await runCommand('npm', ['run', '--silent', script], ['pipe', 'pipe']);
  console.log(isGood ? `npm run ${script}: good` : `npm run ${script}: failed\n${output}`);
  return isGood;
}

type Output = 'pipe' | 'inherit';

/** Runs a command. The result has what it writes to the outputs that are pipes. */
async function runCommand(command: string, args: readonly string[], outputs: readonly [Output, Output]) {
  const child = spawn(command, args, { stdio: ['ignore', ...outputs] });
  const [exitCode, ...written] = await Promise.all([
    new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject)),
    ...[child.stdout, child.stderr].map((stream) => (stream === null ? '' : text(stream))),
  ]);
  return { isGood: exitCode === 0, output: written.join('') };
}

await run(process.argv.slice(2));
