import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { findProgram } from './find-program.ts';

/** The CPUs of the subjects, as arguments of `taskset`; undefined when processes could not be pinned. */
export interface Pinning {
  /** The CPU that is reserved for subjects. */
  readonly subjectCpus: string | undefined;
  /** All CPUs, for a subject whose second thread needs a core of its own. */
  readonly allCpus: string | undefined;
  /** The report prints this description of the CPUs. */
  readonly description: string;
}

/**
 * Reserves the first CPU for the subjects. Only one subject is under load at a time. This process moves to the other CPUs. Later it starts
 * wrk, the backend and Redis, which inherit these CPUs. If wrk, the backend or Redis shared the CPU of the subject, the ratios of a round
 * would vary by 10–20 % instead of 1–2 %.
 */
export function pinBenchmark(): Pinning {
  const [subjectCpu, ...others] = allowedCpus();
  if (others.length === 0) return notPinned('there is one CPU only');
  if (findProgram('taskset') === undefined)
    return notPinned('taskset is missing: apt-get install util-linux');
  const list = others.join(',');
  // taskset pins only this thread, and later processes inherit the setting. `taskset -a` would pin all threads, but fails if a thread ends
  // while taskset runs.
  const { status, stderr } = spawnSync('taskset', ['-cp', list, String(process.pid)], { encoding: 'utf8' });
  if (status !== 0) return notPinned(stderr.trim());
  return {
    subjectCpus: String(subjectCpu),
    allCpus: `${subjectCpu},${list}`,
    description: `The subject is pinned to CPU ${subjectCpu}, wrk, the backend and Redis to CPU ${list}; with the growing numbers of keys the gateway has all of them.`,
  };
}

function notPinned(why: string): Pinning {
  return {
    subjectCpus: undefined,
    allCpus: undefined,
    description: `**Not pinned** (${why}): the subject shares CPUs with its load.`,
  };
}

/** The CPUs that this process may use. A container may allow only some CPUs, so the first CPU of the machine may be unavailable. */
function allowedCpus(): number[] {
  const list = /^Cpus_allowed_list:\s+(.+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return parseCpuList(list);
}

/** Parses the kernel's list of CPUs, for example `0-2,8` (cpuset(7)). */
export function parseCpuList(list: string): number[] {
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
