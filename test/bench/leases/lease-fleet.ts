import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { readCounts } from '../capacity/redis-counts.ts';
import type { BenchRedis } from '../redis.ts';
import type { LoggedRequest } from './oracle.ts';
import { monotonicUs, type PhaseDone, type PhaseOfProcess } from './phase.ts';
import { processes, type SchemeName } from './schemes.ts';

/** Processes and tests share compiled code, because compilation takes half of the CPU time of a start. */
const env = {
  ...process.env,
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../../node_modules/.cache/compiled', import.meta.url)),
};

interface Member {
  readonly child: ChildProcess;
  readonly ready: Promise<unknown>;
  /** Resolves when the process has been killed or has ended without an error. */
  readonly ended: Promise<PhaseDone>;
}

export interface Phase {
  readonly rates: readonly number[];
  readonly limit: number;
  readonly windowMs: number;
  readonly ms: number;
  /** Called 250 ms after the start of the phase, with the Redis key of the counts. */
  readonly fault?: (countsKey: string) => Promise<void> | void;
}

export interface PhaseResult {
  readonly requests: readonly LoggedRequest[];
  readonly calls: number;
  readonly redisCpuSeconds: number;
  readonly faultAtUs: number;
  /** Units that Redis has charged, and that living processes have not used. */
  readonly unused: number;
  readonly countsKey: string;
}

export type LeaseFleet = ReturnType<typeof startLeaseFleet>;

/** Starts the processes, whose logs go to `dir`. */
export function startLeaseFleet(redis: BenchRedis, dir: string) {
  const client = new Redis(redis.port, '127.0.0.1');
  const fleet = Array.from({ length: processes }, () => startProcess(redis));

  return {
    client,
    runPhase,
    redisCpuSeconds,
    /** Sends a signal to the process at a place. -1 is the last process. */
    signal: (place: number, signal: NodeJS.Signals) => void fleet.at(place)?.child.kill(signal),
    /** Removes the last process, which has been killed. */
    dropLast: () => void fleet.pop(),
    kill() {
      client.disconnect();
      for (const { child } of fleet) child.kill('SIGKILL');
    },
  };

  async function runPhase(scheme: SchemeName, phase: Phase): Promise<PhaseResult> {
    await Promise.all(fleet.map(({ ready }) => ready));
    const id = `key${monotonicUs()}`;
    const countsKey = scheme === 'gateway' ? `gateway:{${id}}` : `leases:{${id}}`;
    const key = { id, limit: phase.limit, windowMs: phase.windowMs };
    const startsUs = monotonicUs() + 20_000;
    const [cpuBefore, callsBefore] = [await redisCpuSeconds(), await redis.scriptCalls()];
    const members = fleet.map((member, place) => {
      const logFile = join(dir, `${place}.log`);
      const done = new Promise<PhaseDone>((resolve) => member.child.once('message', resolve));
      const { ms } = phase;
      const requestsPerSecond = phase.rates[place] ?? 0;
      member.child.send({ scheme, key, requestsPerSecond, startsUs, ms, logFile } satisfies PhaseOfProcess);
      return { logFile, done: Promise.race([done, member.ended]) };
    });
    let faultAtUs = 0;
    if (phase.fault !== undefined) {
      await sleep(Math.max(0, (startsUs - monotonicUs()) / 1_000) + 250);
      await phase.fault(countsKey);
      faultAtUs = monotonicUs();
    }
    const done = await Promise.all(members.map((member) => member.done));
    const logs = members.map(({ logFile }) => readLog(logFile));
    return {
      requests: logs.flat(),
      unused: done.reduce((sum, { unused }) => sum + unused, 0),
      redisCpuSeconds: (await redisCpuSeconds()) - cpuBefore,
      calls: (await redis.scriptCalls()) - callsBefore,
      faultAtUs,
      countsKey,
    };
  }

  async function redisCpuSeconds(): Promise<number> {
    return (await readCounts([client])).cpuSeconds;
  }
}

function startProcess({ port }: BenchRedis): Member {
  const child = fork(new URL('lease-process.ts', import.meta.url), [String(port)], { env });
  const ended = once(child, 'exit').then(([code]): PhaseDone => {
    if (code) throw new Error(`a process ended with ${code}`);
    return { unused: 0 };
  });
  return { child, ready: once(child, 'message'), ended };
}

/** Reads the log of a process. A request without a second line was under way when the process died. */
function readLog(file: string): readonly LoggedRequest[] {
  const requests = new Map<string, LoggedRequest>();
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue;
    const [number = '', beganUs, beganIn, endedUs, kind, remaining, window] = line.split(' ');
    requests.set(number, {
      ...{ beganUs: Number(beganUs), beganIn: Number(beganIn), endedUs: Number(endedUs ?? Infinity) },
      ...{ kind: (kind ?? 'unknown') as LoggedRequest['kind'], remaining: Number(remaining ?? 0) },
      window: Number(window ?? beganIn),
    });
  }
  return [...requests.values()];
}
