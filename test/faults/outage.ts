import { setTimeout as sleep } from 'node:timers/promises';
import { bounds as shipped } from '../../gateway/bounds.ts';
import { type Fleet, readiness, startFleet } from '../support/fleet.ts';
import { type GatewayProcess, makeCustomKey } from '../support/gateway-process.ts';
import { type Answer, countStatuses, startLoad } from '../support/load.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';

export type Fault = 'killed' | 'frozen' | 'slow' | 'full' | 'read-only';

export interface Outage {
  /** Answers of the processes that go on locally, and of the one that refuses, by status. */
  readonly local: Record<number, number>;
  readonly refusing: Record<number, number>;
  readonly failures: readonly string[];
  /** Answers 503 without the code `store_unavailable` or without Retry-After. */
  readonly badRefusals: number;
  readonly readyWhileAway: {
    readonly local: number;
    readonly refusing: number;
    readonly reasons: readonly string[];
  };
  readonly readyAfter: readonly string[];
  /** Log lines of each process on entering and on leaving the outage. */
  readonly entered: readonly number[];
  readonly left: readonly number[];
  /** A key's requests: its limit, admitted before the fault and during it by the local processes. */
  readonly limit: number;
  readonly admittedBefore: number;
  readonly admittedAway: number;
  /** What Redis counted of that key once it was back and everything was reported. */
  readonly dayUsedAfter: number;
  /** Admitted of a new key with that limit, by both local processes after the return. */
  readonly admittedAfter: number;
  /** Total less upstream time of requests: with Redis; without it until the breaker opened, and from then on. */
  readonly p99WithRedisMs: number;
  readonly slowestBeforeBreakerMs: number;
  readonly p99AfterBreakerMs: number;
  /** From the repair until every process had logged that Redis is back. */
  readonly backAfterMs: number;
  /** Access lines of the local processes with the source `local`. */
  readonly decidedLocally: number;
}

export interface OutageOptions {
  readonly holdMs: number;
  /** Absent: as shipped. */
  readonly bounds?: NonNullable<Tuning['bounds']>;
}

const limit = 40;
const usedBefore = 20;

/**
 * Redis goes and comes back under load, before two processes that go on locally and one that refuses. It is well for
 * `holdMs` at first, and away for as long beside what the test itself takes.
 */
export async function measureOutage(fault: Fault, { holdMs, bounds }: OutageOptions): Promise<Outage> {
  const roomy = makeCustomKey(1_000_000_000, 1_000_000_000);
  const tight = makeCustomKey(1_000_000, limit);
  const fresh = makeCustomKey(1_000_000, limit);
  const fleet = await startFleet({
    starts: [{}, {}, { onFailure: 'refuse' as const }].map((start) => ({
      ...start,
      ...(bounds && { tuning: { bounds } }),
    })),
    relayed: fault === 'slow',
    config: { keys: [roomy.entry, tight.entry, fresh.entry], bans: { after: 1_000_000 } },
  });
  const [first = '', second = '', refusing = ''] = fleet.origins;
  const locals = fleet.gateways.slice(0, 2);
  const [one, , refuser] = fleet.gateways;
  if (one === undefined || refuser === undefined) throw new Error('three gateways were started');
  const path = '/v1/store/orders';
  const send = (origin: string, secret: string, requestsMax: number) =>
    startLoad({ origins: [origin], secrets: [secret], clients: 4, requestsMax, path }).done;

  const localLoad = startLoad({
    origins: [first, second],
    secrets: [roomy.secret],
    clients: 4,
    pauseMs: 10,
    path,
  });
  const refusingLoad = startLoad({
    origins: [refusing],
    secrets: [roomy.secret],
    clients: 2,
    pauseMs: 10,
    path,
  });
  try {
    const before = [
      await send(first, tight.secret, usedBefore / 2),
      await send(second, tight.secret, usedBefore / 2),
    ];
    await sleep(holdMs);
    await breakRedis(fleet, fault, bounds?.storeDeadlineMs ?? shipped.storeDeadlineMs);
    await Promise.all(fleet.gateways.map((gateway) => gateway.line(({ msg }) => msg === 'Redis is away')));
    const away = await Promise.all([first, second].map((origin) => send(origin, tight.secret, 2 * limit)));
    await sleep(holdMs);
    const [ready, unready] = await Promise.all([readiness(one), readiness(refuser)]);

    const repairedAtMs = performance.now();
    await repairRedis(fleet, fault);
    await Promise.all(fleet.gateways.map((gateway) => gateway.line(({ msg }) => msg === 'Redis is back')));
    const backAfterMs = performance.now() - repairedAtMs;

    const admittedAway = countAdmitted(away.flatMap(({ answers }) => answers));
    const survived = fault === 'killed' ? 0 : usedBefore;
    const dayUsed = async () =>
      Number(await fleet.inspector.hget(`${fleet.prefix}:{${tight.entry.id}}`, 'dayUsed'));
    await until('local use is written back', async () => (await dayUsed()) >= survived + admittedAway);
    const after = await Promise.all([first, second].map((origin) => send(origin, fresh.secret, 2 * limit)));
    const [localOutcome, refusingOutcome] = await Promise.all([localLoad.stop(), refusingLoad.stop()]);
    const readyAfter = await Promise.all(fleet.gateways.map(readiness));

    const outcomes = [...before, ...away, ...after, localOutcome, refusingOutcome];
    const times = decisionTimes(locals);
    return {
      local: countStatuses(localOutcome.answers),
      refusing: countStatuses(refusingOutcome.answers),
      failures: outcomes.flatMap(({ failures }) => failures),
      badRefusals: refusingOutcome.answers.filter(isBadRefusal).length,
      readyWhileAway: { local: ready.httpStatus, refusing: unready.httpStatus, reasons: ready.body.reasons },
      readyAfter: readyAfter.map(({ body }) => body.status),
      entered: fleet.gateways.map((gateway) => countLines(gateway, 'Redis is away')),
      left: fleet.gateways.map((gateway) => countLines(gateway, 'Redis is back')),
      limit,
      admittedBefore: countAdmitted(before.flatMap(({ answers }) => answers)),
      admittedAway,
      dayUsedAfter: await dayUsed(),
      admittedAfter: countAdmitted(after.flatMap(({ answers }) => answers)),
      p99WithRedisMs: p99(times.shared),
      slowestBeforeBreakerMs: times.before.at(-1) ?? 0,
      p99AfterBreakerMs: p99(times.after),
      backAfterMs,
      decidedLocally: locals.flatMap(({ lines }) => lines.filter(({ source }) => source === 'local')).length,
    };
  } finally {
    await Promise.all([localLoad.stop(), refusingLoad.stop()]);
    await fleet.stop();
  }
}

async function breakRedis(
  { redis, relay, inspector }: Fleet,
  fault: Fault,
  deadlineMs: number,
): Promise<void> {
  switch (fault) {
    case 'killed':
      return redis.kill();
    case 'frozen':
      return redis.freeze();
    case 'slow':
      return relay?.delay({ toServerMs: 2 * deadlineMs, toClientMs: 2 * deadlineMs });
    case 'full':
      await inspector.config('SET', 'maxmemory', '1');
      return;
    case 'read-only':
      // A replica of a master that is not there: it still serves reads, and refuses writes.
      await inspector.replicaof('127.0.0.1', 1);
      return;
  }
}

async function repairRedis({ redis, relay, inspector }: Fleet, fault: Fault): Promise<void> {
  switch (fault) {
    case 'killed':
      return redis.restart();
    case 'frozen':
      return redis.thaw();
    case 'slow':
      return relay?.delay({ toServerMs: 0, toClientMs: 0 });
    case 'full':
      await inspector.config('SET', 'maxmemory', '0');
      return;
    case 'read-only':
      await inspector.replicaof('NO', 'ONE');
      return;
  }
}

function countAdmitted(answers: readonly Answer[]): number {
  return answers.filter(({ status }) => status === 200).length;
}

function isBadRefusal({ status, headers, body }: Answer): boolean {
  return (
    status !== 200 && !(status === 503 && headers['retry-after'] && body.includes('"store_unavailable"'))
  );
}

function countLines({ lines }: GatewayProcess, msg: string): number {
  return lines.filter((line) => line.msg === msg).length;
}

/** From access lines: decided by Redis, and alone before and after the process logged that Redis is away; ascending. */
function decisionTimes(gateways: readonly GatewayProcess[]) {
  const times = { shared: [] as number[], before: [] as number[], after: [] as number[] };
  for (const { lines } of gateways) {
    const opened = lines.findIndex(({ msg }) => msg === 'Redis is away');
    for (const [index, { source, totalMs, upstreamMs }] of lines.entries()) {
      const tookMs = Number(totalMs) - Number(upstreamMs ?? 0);
      if (source === 'shared') times.shared.push(tookMs);
      else if (source === 'local') times[index < opened ? 'before' : 'after'].push(tookMs);
    }
  }
  for (const each of Object.values(times)) each.sort((a, b) => a - b);
  return times;
}

function p99(ascending: readonly number[]): number {
  return ascending[Math.floor(ascending.length * 0.99)] ?? 0;
}
