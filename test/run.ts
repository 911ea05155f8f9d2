import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const usage = `node test/run.ts [unit | rest] [FILTER...]
without a word: type check, lint and the tests of everyday size, side by side
unit: the tests of everyday size alone, of the files whose path contains a FILTER
rest: the tests of full size`;

/** Runs `npm test`, `npm run unit` and `npm run test:rest`. Exits with 1 when anything fails. */
async function run([part, ...filters]: readonly string[]): Promise<void> {
  const startedMs = performance.now();
  const isGood = (await Promise.all(partsOf(part, filters))).every(Boolean);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  console.log(`\n${isGood ? 'All good' : 'Failed'} after ${seconds} s.`);
  process.exitCode = isGood ? 0 : 1;
}

function partsOf(part: string | undefined, filters: readonly string[]): Promise<boolean>[] {
  if (part === undefined) return [checked('check'), checked('lint'), runTests(everyday)];
  if (part === 'unit') return [runTests([...everyday, ...filters])];
  if (part === 'rest') return [runTests([...full, ...(filters.length > 0 ? filters : filesOfFullSize())])];
  throw new Error(usage);
}

const everyday = ['--tagsFilter', '!full'];
const full = ['--tagsFilter', 'full'];

/** Only these are imported: importing all files in search of a tag takes a minute. */
function filesOfFullSize(): string[] {
  const isOfFullSize = /\btags: .*'full'|^ \* @module-tag full$/m;
  return readdirSync('test', { recursive: true, encoding: 'utf8' })
    .map((name) => join('test', name))
    .filter((file) => file.endsWith('.test.ts') && isOfFullSize.test(readFileSync(file, 'utf8')));
}

async function runTests(args: readonly string[]): Promise<boolean> {
  return (await runCommand('npx', ['vitest', 'run', '--config', 'test/vitest.config.ts', ...args], 'inherit'))
    .isGood;
}

/** Prints what a check says when it has ended, so that its lines do not mix with those of the tests. */
async function checked(script: string): Promise<boolean> {
  const { isGood, output } = await runCommand('npm', ['run', '--silent', script], 'pipe');
  console.log(isGood ? `npm run ${script}: good` : `npm run ${script}: failed\n${output}`);
  return isGood;
}

async function runCommand(command: string, args: readonly string[], output: 'pipe' | 'inherit') {
  const child = spawn(command, args, { stdio: ['ignore', output, output] });
  const [exitCode, ...written] = await Promise.all([
    new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject)),
    ...[child.stdout, child.stderr].map((stream) => (stream === null ? '' : text(stream))),
  ]);
  return { isGood: exitCode === 0, output: written.join('') };
}

await run(process.argv.slice(2));
