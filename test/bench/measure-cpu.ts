import { readdirSync, readFileSync } from 'node:fs';

/** `getconf CLK_TCK`: the unit of CPU time in /proc is 10 ms on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** The figures of a process, from /proc/PID/stat. */
export interface ProcessStat {
  readonly parentPid: number;
  /** CPU time of all threads, including ended threads, and of ended children. */
  readonly userTicks: number;
  readonly systemTicks: number;
}

export interface CpuSeconds {
  /** The CPU time of the program's own code, including garbage collection and compilation. */
  readonly user: number;
  /** The CPU time of the kernel for the program, mainly for its sockets. */
  readonly system: number;
  readonly total: number;
}

/** CPU seconds that a process and all its descendants have used so far. */
export function treeCpuSeconds(rootPid: number): CpuSeconds {
  const stats = readAllStats();
  let [userTicks, systemTicks] = [0, 0];
  for (const [pid, stat] of stats) {
    if (!descendsFrom(pid, rootPid, stats)) continue;
    userTicks += stat.userTicks;
    systemTicks += stat.systemTicks;
  }
  return {
    user: userTicks / ticksPerSecond,
    system: systemTicks / ticksPerSecond,
    total: (userTicks + systemTicks) / ticksPerSecond,
  };
}

/** The resident memory of one process in bytes. */
export function residentBytes(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes ?? Number.NaN) * 1024;
}

function readAllStats(): Map<number, ProcessStat> {
  const stats = new Map<number, ProcessStat>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    try {
      stats.set(pid, parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8')));
    } catch {
      // The process has ended since it was listed.
    }
  }
  return stats;
}

function descendsFrom(pid: number, rootPid: number, stats: ReadonlyMap<number, ProcessStat>): boolean {
  for (let at: number | undefined = pid; at !== undefined; at = stats.get(at)?.parentPid) {
    if (at === rootPid) return true;
  }
  return false;
}

/** The command's name may contain spaces and brackets, so fields are counted from its last bracket (proc(5)). */
export function parseStat(text: string): ProcessStat {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (index: number) => Number(fields[index]);
  return { parentPid: field(1), userTicks: field(11) + field(13), systemTicks: field(12) + field(14) };
}
