import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const startTimeoutMs = 20_000;
/** How long a process may take to exit before it is killed. */
const endTimeoutMs = 10_000;

/** A process of the benchmark, which runs until it is ended. */
export interface Running {
  readonly pid: number;
  /** The file that receives the process's standard output and standard error. */
  readonly logFile: string;
}

const children = new Set<ChildProcess>();

export interface ProcessPlace {
  readonly dir: string;
  /** The name of the process's log file. */
  readonly name: string;
  /** The CPUs of the process with all threads and children, as arguments of `taskset`; undefined: the CPUs of the benchmark itself. */
  readonly cpus?: string | undefined;
}

/**
 * Starts a process whose output goes to a file. The process leads its own process group. Ctrl-C therefore reaches only the benchmark. A
 * signal to the group also ends the children of the process.
 */
export function startProcess(
  command: string,
  args: readonly string[],
  { dir, name, cpus }: ProcessPlace,
): Running {
  const logFile = join(dir, `${name}.log`);
  const log = openSync(logFile, 'w');
  // taskset replaces itself with the command, so the process id stays the same.
  const [program, programArgs] =
    cpus === undefined ? [command, args] : ['taskset', ['-c', cpus, command, ...args]];
  const child = spawn(program, programArgs, { detached: true, stdio: ['ignore', log, log], cwd: dir });
  closeSync(log);
  child.on('error', () => children.delete(child));
  child.on('exit', () => children.delete(child));
  if (child.pid === undefined) throw new Error(`cannot start ${command}`);
  children.add(child);
  return { pid: child.pid, logFile };
}

/** Ends a process and its group with SIGTERM, and with SIGKILL after a timeout. */
export async function endProcess(pid: number): Promise<void> {
  const child = [...children].find((candidate) => candidate.pid === pid);
  if (child === undefined) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  signalGroup(pid, 'SIGTERM');
  await Promise.race([ended, sleep(endTimeoutMs)]);
  signalGroup(pid, 'SIGKILL');
}

export async function endAllProcesses(): Promise<void> {
  await Promise.all([...children].map((child) => endProcess(child.pid ?? 0)));
}

/** Kills all processes without waiting for their end. The function is synchronous, because an exit handler calls it. */
export function killAllProcesses(): void {
  for (const { pid } of children) if (pid !== undefined) signalGroup(pid, 'SIGKILL');
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The processes of the group have already exited.
  }
}

/** Waits until a URL gives any response. @throws with the output of the process when it exits or takes too long */
export async function untilAnswers(url: string, { pid, logFile }: Running): Promise<void> {
  const deadlineMs = performance.now() + startTimeoutMs;
  while (performance.now() < deadlineMs && isAlive(pid)) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(1_000) });
      await response.arrayBuffer();
      return;
    } catch {
      await sleep(10);
    }
  }
  throw new Error(`${url} does not answer:\n${readFileSync(logFile, 'utf8').slice(-2_000)}`);
}

function isAlive(pid: number): boolean {
  return [...children].some((child) => child.pid === pid);
}
