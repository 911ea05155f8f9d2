import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

export interface Ran {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the command line has of the environment of the tests: nothing that it could read by accident. */
export const bareEnvironment = {
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
};

/** Runs the command line as a process, without a terminal. Of the environment it has `bareEnvironment` and `env`. */
export async function runTollgate(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin?: string | Uint8Array,
): Promise<Ran> {
  const child = spawn(process.execPath, ['gateway/cli/tollgate.ts', ...args], {
    env: { ...bareEnvironment, ...env },
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  // A command that has found what it looked for closes its input.
  child.stdin?.on('error', () => {}).end(stdin);
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('both are pipes');
  const [output, errors, [exitCode]] = await Promise.all([text(stdout), text(stderr), once(child, 'exit')]);
  return { exitCode, stdout: output, stderr: errors };
}
