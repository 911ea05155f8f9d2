import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { findProgram } from './find-program.ts';

/** Which CPUs subjects run on, as taskset takes them; unset where nothing could be pinned. */
export interface Pinning {
  /** The one that is theirs alone. */
  readonly subjectCpus: string | undefined;
  /** Every CPU, for a subject whose second thread is meant to have a core of its own. */
  readonly allCpus: string | undefined;
  /** In the words of the report. */
  readonly description: string;
}

/**
 * Leaves the first CPU to the subjects, of which only one has work at a time, and moves this process to the others,
 * and with it wrk, the backend and Redis, which it starts later: where they share CPUs with the subject, the ratios of
 * a round scatter by 10–20 % instead of 1–2 %.
 */
export function pinBenchmark(): Pinning {
  const [subjectCpu, ...others] = allowedCpus();
  if (others.length === 0) return notPinned('there is one CPU only');
  if (findProgram('taskset') === undefined)
    return notPinned('taskset is missing: apt-get install util-linux');
  const list = others.join(',');
  // This thread alone, from which all that is started later inherits: with `-a` a thread that just ends is an error.
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

/** A container may allow few of the machine's CPUs, and not the first of them. */
function allowedCpus(): number[] {
  const list = /^Cpus_allowed_list:\s+(.+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return parseCpuList(list);
}

/** The kernel's list form, for example `0-2,8` (cpuset(7)). */
export function parseCpuList(list: string): number[] {
  return list.split(',').flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}
