import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { bareEnvironment } from './run-tollgate.ts';
import { until } from './until.ts';

export interface PseudoTerminal {
  /** The output of the command so far. */
  output(): string;
  /** The lines of the last screen, without colours. */
  lines(): readonly string[];
  type(keys: string): void;
  /**
   * Closes the terminal, as if the user had closed its window. Every process in the terminal gets SIGHUP, and can no longer write to the
   * terminal.
   */
  close(): void;
  /** Sends a signal to the command. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the command has ended. `isRestored` states whether the command restored the modes of the terminal. */
  ended(): Promise<{ readonly exitCode: number | null; readonly isRestored: boolean }>;
}

const home = '\u001b[H';

/** Runs the command line in a pseudo-terminal, which the `script` program of util-linux creates. The command is ended after the test. */
export async function runInTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { columns, rows }: { readonly columns: number; readonly rows: number },
): Promise<PseudoTerminal> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-terminal-'));
  const [pidFile, before, after] = ['pid', 'before', 'after'].map((name) => join(folder, name));
  const command = [process.execPath, 'gateway/cli/tollgate.ts', ...args].map((word) => `'${word}'`).join(' ');
  const line = `stty rows ${rows} cols ${columns}; stty -g > ${before}; sh -c 'echo $$ > ${pidFile}; exec "$@"' sh ${command}; code=$?; stty -g > ${after}; exit $code`;
  const child: ChildProcess = spawn('script', ['-qec', line, '/dev/null'], {
    env: { ...bareEnvironment, TERM: 'xterm-256color', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (chunk) => {
    output += chunk;
  });
  const closed = once(child, 'close');
  const read = (file = '') => readFileSync(file, 'utf8').trim();
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  });
  await until('something is written', () => output !== '');

  return {
    output: () => output,
    lines() {
      const frame = output.split(home).at(-1) ?? '';
      return frame.replace(/\u001b\[[\d;?]*[A-Za-z]/g, '').split(/\r+\n/);
    },
    type: (keys) => void child.stdin?.write(keys),
    close: () => void child.kill('SIGKILL'),
    signal: (signal) => void process.kill(Number(read(pidFile)), signal),
    async ended() {
      const [exitCode] = await closed;
      return { exitCode, isRestored: read(before) === read(after) };
    },
  };
}
