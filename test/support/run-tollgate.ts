import { spawn } from 'node:child_process';
import { Console } from 'node:console';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { CommanderError } from 'commander';
import { createProgram } from '../../gateway/cli/program.ts';
import { printable } from '../../gateway/shared/terminal/printable.ts';

export interface Ran {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment of a command under test, without the variables of the test run that the command could read. */
export const bareEnvironment = {
  PATH: process.env.PATH,
  // With this empty value, commands do not read a `tollgate.yaml` in this checkout.
  TOLLGATE_CONFIG: '',
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  // Commands keep no compiled code in the home of the user who runs the tests.
  XDG_CACHE_HOME: '/dev/null',
};

/** Runs the command line as a process, without a terminal. The environment of the process consists of `bareEnvironment` and `env`. */
export async function runTollgateProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin?: string | Uint8Array,
): Promise<Ran> {
  const child = spawn(process.execPath, ['gateway/cli/tollgate.ts', ...args], {
    env: { ...bareEnvironment, ...env },
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  // A command closes its input when it has read enough.
  child.stdin?.on('error', () => {}).end(stdin);
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('standard output and standard error are pipes');
  const [output, errors, [exitCode]] = await Promise.all([text(stdout), text(stderr), once(child, 'exit')]);
  return { exitCode, stdout: output, stderr: errors };
}

let lastRun: Promise<unknown> = Promise.resolve();

/**
 * Runs the command line in this process, with its own streams, environment and exit code. A run in this process takes a few milliseconds,
 * and a separate process takes a third of a second. Commands that are started at the same time run one after the other.
 */
export function runTollgate(...run: Parameters<typeof runTollgateProcess>): Promise<Ran> {
  const ran = lastRun.then(() => runHere(...run));
  lastRun = ran.catch(() => {});
  return ran;
}

async function runHere(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin: string | Uint8Array = '',
): Promise<Ran> {
  const [stdout, stderr] = [collect(), collect()];
  const exited = Promise.withResolvers<void>();
  let exitCode = 0;
  const restore = replaceGlobals({
    stdin: Readable.from([Buffer.from(stdin)], { objectMode: false }),
    stdout: stdout.stream,
    stderr: stderr.stream,
    env: { ...bareEnvironment, ...env },
    exit(code: number) {
      process.exitCode = code ?? process.exitCode;
      exited.resolve();
    },
  });
  const fail = (message: string) => {
    console.error(printable(message));
    process.exitCode = 1;
  };
  try {
    const ended = createProgram()
      .parseAsync(args, { from: 'user' })
      // Some commands return, and call `process.exit` in the next turn of the event loop.
      .then(() => turn());
    await Promise.race([ended, exited.promise]);
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode;
    else fail(error instanceof Error ? error.message : String(error));
  } finally {
    exitCode = Number(process.exitCode ?? 0);
    restore();
  }
  return { exitCode, stdout: stdout.text(), stderr: stderr.text() };
}

/** Replaces members of `process` and the console. @returns a function that restores them */
function replaceGlobals(members: {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly exit: (code: number) => void;
}): () => void {
  const before = Object.keys(members).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  const { console: consoleBefore } = globalThis;
  const exitCodeBefore = process.exitCode;
  process.exitCode = undefined;
  for (const [name, value] of Object.entries(members))
    Object.defineProperty(process, name, { value, configurable: true, writable: true, enumerable: true });
  globalThis.console = new Console(members.stdout, members.stderr);
  return () => {
    globalThis.console = consoleBefore;
    process.exitCode = exitCodeBefore;
    for (const [name, descriptor] of before) if (descriptor) Object.defineProperty(process, name, descriptor);
  };
}

function collect() {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString() };
}
