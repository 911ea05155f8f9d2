import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { withDependents } from './needs.ts';
import { withoutCapabilities } from './without-capabilities.ts';

/**
 * Proves that each capability can be deleted. The program deletes the folder of a capability, its tests and its lines in the lists from a
 * copy of the repository. The type check, the linter and all other everyday tests must then pass. The last proof deletes all capabilities,
 * so that all lists are empty. The capabilities that need a deleted capability are deleted with it (`needs.ts`).
 *
 *     node test/deletion/run.ts              every capability, and all together
 *     node test/deletion/run.ts guard        one capability
 *     node test/deletion/run.ts guard,leaks  two capabilities together
 */
const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = 'gateway/capabilities';

async function prove(names: readonly string[]): Promise<boolean> {
  const copy = mkdtempSync(join(tmpdir(), 'tollgate-deletion-'));
  try {
    for (const file of await filesOfRepository()) cpSync(join(root, file), join(copy, file));
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const name of names) {
      rmSync(join(copy, folder, name), { recursive: true });
      rmSync(join(copy, 'test/capabilities', name), { recursive: true, force: true });
    }
    for (const list of readdirSync(join(copy, folder, 'lists'))) {
      const path = join(copy, folder, 'lists', list);
      writeFileSync(path, withoutCapabilities(readFileSync(path, 'utf8'), names));
    }
    const schema = await run(copy, 'node', ['gateway/cli/tollgate.ts', 'schema']);
    if (!schema.isGood) return report(names, 'schema', schema);
    writeFileSync(join(copy, 'config/tollgate.schema.json'), schema.output);
    for (const [what, command, args] of checks) {
      const result = await run(copy, command, args);
      if (!result.isGood) return report(names, what, result);
    }
    return report(names);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

// The build information of an incremental check would be shared with the repository, through the link to its packages.
const tsc = ['tsc', '--noEmit', '--incremental', 'false', '--checkers', '1'];
const checks = [
  ['type check', 'npx', tsc],
  ['type check of the pages', 'npx', [...tsc, '-p', 'gateway/admin/pages/browser']],
  ['lint', 'npx', ['biome', 'check', '--vcs-enabled=false', 'gateway', 'test', 'backend', 'config']],
  ['tests', 'node', ['test/run.ts', 'unit']],
] as const;

function report(names: readonly string[], failed?: string, result?: Result): boolean {
  console.log(
    `without ${names.join(', ')}: ${failed === undefined ? 'good' : `the ${failed} failed\n${result?.output}`}`,
  );
  return failed === undefined;
}

/** The files that belong to the repository, new files included. */
async function filesOfRepository(): Promise<readonly string[]> {
  const { output } = await run(root, 'git', ['ls-files', '--cached', '--others', '--exclude-standard']);
  const deleted = new Set((await run(root, 'git', ['ls-files', '--deleted'])).output.split('\n'));
  return output.split('\n').filter((file) => file !== '' && !deleted.has(file));
}

interface Result {
  readonly isGood: boolean;
  readonly output: string;
}

async function run(cwd: string, command: string, args: readonly string[]): Promise<Result> {
  const PATH = `${join(root, 'node_modules/.bin')}:${dirname(process.execPath)}:${process.env.PATH}`;
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, PATH },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [exitCode, output, errors] = await Promise.all([
    new Promise<number | null>((resolve, reject) => child.once('close', resolve).once('error', reject)),
    text(child.stdout),
    text(child.stderr),
  ]);
  return { isGood: exitCode === 0, output: exitCode === 0 ? output : `${output}${errors}` };
}

const all = readdirSync(join(root, folder), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'interfaces' && entry.name !== 'lists')
  .map(({ name }) => name);
const [asked] = process.argv.slice(2);
const proofs = asked === undefined ? [...all.map((name) => [name]), all] : [asked.split(',')];
let isGood = true;
for (const names of proofs) isGood = (await prove(withDependents(names))) && isGood;
process.exitCode = isGood ? 0 : 1;
