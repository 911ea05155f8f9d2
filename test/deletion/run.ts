import { type ChildProcess, spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { usedOnlyBy, withDependents } from './needs.ts';
import { withoutAlerts, withoutCapabilities, withoutLinks, withoutSettings } from './without-capabilities.ts';

/**
 * Proves that each capability can be deleted. The program deletes a capability from a copy of the repository: its folder, its tests (also
 * folders such as `test/capabilities/leaks/with-holder`), its page in `config/guide/`, the links to these files, its lines in the lists,
 * its settings in the sample configurations, and its alerts. It then writes the references anew. The type check, the linter and all other
 * everyday tests must then pass. The capabilities that need the deleted capability are deleted with it (`needs.ts`). The last proof deletes
 * all capabilities, so that all lists are empty.
 *
 *     node test/deletion/run.ts              every capability, and all together
 *     node test/deletion/run.ts guard        one capability
 *     node test/deletion/run.ts guard,leaks  two capabilities together
 *     node test/deletion/run.ts --no-tests   only the type checks and the linter
 *
 * The exit code is 1 when any proof fails. Standard error has the end of the output of each failed part.
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = 'gateway/capabilities';

/** The parts of a proof, each with its time limit. Other work on the machine may slow a part down by a factor of ten. */
const minutesMax = { references: 5, 'type check': 15, 'type check of the pages': 15, lint: 15, tests: 60 };
type Part = keyof typeof minutesMax;

// The build information of an incremental check would be shared with the repository, through the link to its packages.
const tsc = ['tsc', '--noEmit', '--incremental', 'false', '--checkers', '1'];
const checks: readonly (readonly [Part, command: string, args: readonly string[]])[] = [
  ['type check', 'npx', tsc],
  ['type check of the pages', 'npx', [...tsc, '-p', 'gateway/admin/pages/browser']],
  ['lint', 'npx', ['biome', 'check', '--vcs-enabled=false', 'gateway', 'test', 'backend', 'config']],
];
const tests = ['test/run.ts', 'unit'] as const;
/** The last lines of a failed part that the program prints. */
const linesShown = 150;

async function prove(names: readonly string[]): Promise<boolean> {
  const startedMs = performance.now();
  const place = mkdtempSync(join(tmpdir(), 'tollgate-deletion-'));
  const removePlace = () => rmSync(place, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', removePlace);
  try {
    const failure = await failureWithout(names, place);
    const seconds = Math.round((performance.now() - startedMs) / 1_000);
    const title = `without ${names.join(', ')}`;
    console.log(`${title}: ${failure === undefined ? 'good' : 'failed'} (${seconds} s)`);
    if (failure !== undefined) console.error(`${title}: ${failure}`);
    return failure === undefined;
  } finally {
    removePlace();
    process.off('exit', removePlace);
  }
}

/** The part that fails without these capabilities, with the end of its output; undefined if all parts pass. */
async function failureWithout(names: readonly string[], place: string): Promise<string | undefined> {
  const copy = join(place, 'repository');
  // The parts put their temporary files here.
  mkdirSync(join(place, 'tmp'));
  for (const file of await filesOfRepository(place)) cpSync(join(root, file), join(copy, file));
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  // Tests ask git which files belong to the repository, and start programs as another user.
  for (const args of [
    ['init', '--quiet'],
    ['add', '--all'],
  ])
    await outputOf(spawnIn(copy, place, 'git', args));
  chmodSync(place, 0o755);
  const edit = (file: string, change: (text: string) => string) =>
    writeFileSync(join(copy, file), change(readFileSync(join(copy, file), 'utf8')));

  for (const name of names) {
    rmSync(join(copy, folder, name), { recursive: true });
    rmSync(join(copy, 'test/capabilities', name), { recursive: true, force: true });
    rmSync(join(copy, `config/guide/${name}.md`), { force: true });
    for (const both of globSync(`test/capabilities/*/with-${name}`, { cwd: copy }))
      rmSync(join(copy, both), { recursive: true });
  }
  for (const [file, users] of Object.entries(usedOnlyBy))
    if (users.every((user) => names.includes(user))) rmSync(join(copy, file));
  for (const list of readdirSync(join(copy, folder, 'lists')))
    edit(join(folder, 'lists', list), (lines) => withoutCapabilities(lines, names));

  const before = metricsIn(copy);
  const written = await run(place, 'references', process.execPath, ['config/reference/generate/write.ts']);
  if (!written.isGood) return written.failure;
  const left = new Set(metricsIn(copy));
  const gone = before.filter((name) => !left.has(name));
  edit('config/observe/alerts.yml', (rules) => withoutAlerts(rules, 'alert', gone));
  edit('config/observe/alerts.test.yml', (tests) => withoutAlerts(tests, 'name', gone));
  for (const page of globSync('**/*.md', { cwd: copy, exclude: ['node_modules'] }))
    edit(page, (text) => withoutLinks(text, (target) => !existsSync(join(copy, dirname(page), target))));
  const schema = readFileSync(join(copy, 'config/tollgate.schema.json'), 'utf8');
  const known = new Set(Object.keys(JSON.parse(schema).properties));
  for (const sample of globSync('config/{local,staging,production}.yaml', { cwd: copy }))
    edit(sample, (yaml) => withoutSettings(yaml, known));

  for (const [part, command, args] of checks) {
    const result = await run(place, part, command, args);
    if (!result.isGood) return result.failure;
  }
  return values.tests ? failureOfTests(place) : undefined;
}

/** Runs the tests. A test that needs a deleted capability fails always, so the files of failed tests run once more, alone. */
async function failureOfTests(place: string): Promise<string | undefined> {
  const first = await run(place, 'tests', process.execPath, tests);
  if (first.isGood) return undefined;
  const files = [...new Set(first.failure.match(/(?<=^ +npx vitest run .* )test\/[\w/.-]+\.test\.ts/gm))];
  if (files.length === 0) return first.failure;
  const again = await run(place, 'tests', process.execPath, [...tests, ...files]);
  if (!again.isGood) return again.failure;
  console.log(`These tests failed, and passed when they ran alone: ${files.join(', ')}.\n${first.failure}`);
  return undefined;
}

/** The metrics in the reference of a copy. */
function metricsIn(copy: string): readonly string[] {
  const page = readFileSync(join(copy, 'config/reference/metrics.md'), 'utf8');
  return [...page.matchAll(/^- `(tollgate_\w+)`/gm)].map(([, metric = '']) => metric);
}

/** The files that belong to the repository, new files included. */
async function filesOfRepository(place: string): Promise<readonly string[]> {
  const list = async (...args: string[]) =>
    (await outputOf(spawnIn(root, place, 'git', ['ls-files', '-z', ...args]))).output.split('\0');
  const deleted = new Set(await list('--deleted'));
  const all = await list('--cached', '--others', '--exclude-standard');
  return all.filter((file) => file !== '' && !deleted.has(file));
}

type Result =
  | { readonly isGood: true; readonly output: string }
  | { readonly isGood: false; readonly failure: string };

/** Runs one part in the copy of the repository. After its time limit, the part is ended with all its processes. */
async function run(place: string, part: Part, command: string, args: readonly string[]): Promise<Result> {
  const child = spawnIn(join(place, 'repository'), place, command, args);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    endGroup(child);
  }, minutesMax[part] * 60_000);
  const { exitCode, output, all } = await outputOf(child);
  clearTimeout(timer);
  if (exitCode === 0) return { isGood: true, output };
  const why = isLate ? `the ${part} took more than ${minutesMax[part]} minutes` : `the ${part} failed`;
  const lines = all.trimEnd().split('\n').slice(-linesShown);
  return { isGood: false, failure: [why, ...lines, ''].join('\n') };
}

/** The process of the present part. */
let present: ChildProcess | undefined;

function spawnIn(cwd: string, place: string, command: string, args: readonly string[]) {
  const PATH = `${join(root, 'node_modules/.bin')}:${dirname(process.execPath)}:${process.env.PATH}`;
  const env = { ...process.env, PATH, TMPDIR: join(place, 'tmp') };
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  present = child;
  return child;
}

/** What a process prints to its standard output, and what it prints to both outputs, in the order of time. */
async function outputOf(child: ReturnType<typeof spawnIn>) {
  const [output, all]: [string[], string[]] = [[], []];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.push(text);
    all.push(text);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => all.push(text));
  const exitCode = await new Promise<number | null>((resolve, reject) =>
    child.once('close', resolve).once('error', reject),
  );
  present = undefined;
  return { exitCode, output: output.join(''), all: all.join('') };
}

/** Ends a part and the processes that it started, which are one process group. */
function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL');
}

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    console.error(`The proof was ended by ${signal}.`);
    if (present !== undefined) endGroup(present);
    process.exit(1);
  });

const capabilities = readdirSync(join(root, folder), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'interfaces' && entry.name !== 'lists')
  .map(({ name }) => name);
const options = { tests: { type: 'boolean', default: true } } as const;
const { values, positionals } = parseArgs({ options, allowNegative: true, allowPositionals: true });
const [asked] = positionals;
const proofs =
  asked === undefined ? [...capabilities.map((name) => [name]), capabilities] : [asked.split(',')];
const unknown = proofs.flat().filter((name) => !capabilities.includes(name));
if (unknown.length > 0)
  throw new Error(`There is no capability ${unknown.join(', ')}; there are ${capabilities.join(', ')}.`);
let isGood = true;
for (const names of proofs) isGood = (await prove(withDependents(names))) && isGood;
process.exitCode = isGood ? 0 : 1;
