import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { requireProgram } from '../support/require-program.ts';
import { bareEnvironment, runTollgate } from '../support/run-tollgate.ts';
import { until } from '../support/until.ts';

/**
 * The text before the Tab key, and the resulting command line. The folder contains only the file
 * `draft.yaml`.
 */
const completed = [
  ['keys gr', 'keys grant'],
  ['comp', 'completion'],
  ['completion z', 'completion zsh'],
  ['keys list --sta', 'keys list --state'],
  ['keys list --state ba', 'keys list --state banned'],
  ['keys list --plan dr', 'keys list --plan dr'],
  ['admin token --may w', 'admin token --may write'],
  ['check dr', 'check draft.yaml'],
  ['check --conf', 'check --config'],
  ['usage --config dr', 'usage --config draft.yaml'],
  ['diff --against draft.yaml dr', 'diff --against draft.yaml draft.yaml'],
] as const;

test.each([
  ['bash', ['--norc', '--noprofile', '-i'], ''],
  ['zsh', ['-f', '-i'], 'autoload -U compinit; compinit -u -d ./dump; '],
] as const)(
  'the Tab key in %s completes commands, options, their values and files',
  async (name, args, before) => {
    const shell = await requireShell(name);
    const { folder, file } = await scriptFile(name);
    const terminal = spawn('script', ['-qec', [shell, ...args].join(' '), '/dev/null'], {
      cwd: folder,
      env: { ...bareEnvironment, TERM: 'dumb', SHELL: '/bin/sh', HOME: folder },
    });
    onTestFinished(() => void terminal.kill('SIGKILL'));
    let output = '';
    terminal.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
    // The command that defines the prompt writes the prompt as two strings. The terminal's echo of the command
    // therefore does not look like the prompt.
    const prompts = () => output.split('Rea' + 'dy>').length - 1;
    const type = async (text: string) => {
      const before = prompts();
      terminal.stdin.write(`${text}\n`);
      await until(`the prompt comes back behind ${text}`, () => prompts() > before);
    };
    await type(`${before}source ${file}; PS1="Rea""dy>"; tollgate() { echo "ran<$*>"; }`);
    for (const [typed] of completed) await type(`tollgate ${typed}\t`);
    const ended = once(terminal, 'close');
    terminal.stdin.write('exit\n');
    await ended;
    const ran = [...output.matchAll(/^ran<(.*)>/gm)].map(([, line = '']) => line.trim());
    expect(ran).toEqual(completed.map(([, whole]) => whole));
  },
);

test('bash completes a value behind an equals sign', async () => {
  const { file } = await scriptFile('bash');
  const words = '(tollgate admin token --may = w)';
  const run = `source ${file}; COMP_WORDS=${words} COMP_CWORD=5; _tollgate; echo "\${COMPREPLY[*]}"`;
  expect(execFileSync(await requireShell('bash'), ['-c', run], { encoding: 'utf8' })).toBe('write\n');
});

test('fish completes the same, with descriptions', async () => {
  const fish = await requireShell('fish');
  const { folder, file } = await scriptFile('fish');
  const lines = completed.map(([typed]) => `complete -C 'tollgate ${typed}'; echo END`).join('; ');
  const env = { ...bareEnvironment, HOME: folder };
  const output = execFileSync(fish, ['--no-config', '-c', `source ${file}; ${lines}`], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  const last = (line: string) => line.split(' ').at(-1) ?? '';
  // The shell `fish` prints only the last word of a completed command. If an option accepts any value, `fish`
  // prints nothing.
  const words = output.split('END\n').map((one) => one.split('\t')[0]?.trim());
  expect(words.slice(0, completed.length)).toEqual(
    completed.map(([typed, whole]) => (typed === whole ? '' : last(whole))),
  );
  expect(output).toContain('grant\tgive keys other limits for a while');
});

async function scriptFile(shell: string): Promise<{ readonly folder: string; readonly file: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-completion-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, `completion.${shell}`);
  const { exitCode, stdout } = await runTollgate(['completion', shell]);
  expect(exitCode).toBe(0);
  writeFileSync(file, stdout);
  writeFileSync(join(folder, 'draft.yaml'), '');
  return { folder, file };
}

function requireShell(name: string): Promise<string> {
  const advice = `The tests of completion need ${name}: put it on the PATH.`;
  return requireProgram({ names: [name], packageName: name, advice });
}
