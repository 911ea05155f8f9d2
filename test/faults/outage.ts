import { setTimeout as sleep } from 'node:timers/promises';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { type Fleet, readiness, startFleet, type startFleetHere } from '../support/fleet.ts';
import { makeCustomKey, type RunningGateway } from '../support/gateway-process.ts';
import { keysWithoutExpiry } from '../support/keys-without-expiry.ts';
import { countStatuses, type LoadResponse, type RunningLoad, startLoad } from '../support/load.ts';
import { type Replica, startReplica } from '../support/start-replica.ts';
import { startSentinel } from '../support/start-sentinel.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';

/**
 * `failed over`: Redis is killed, and its address moves to a replica, which is promoted. `failed over by Sentinel`: the master is killed,
 * and Sentinels promote a replica.
 */
export type Fault =
  | 'killed'
  | 'failed over'
  | 'failed over by Sentinel'
  | 'frozen'
  | 'slow'
  | 'full'
  | 'read-only';

export interface Outage {
  /** The number of responses for each status: from the processes with `onFailure: local`, and from the process with `refuse`. */
  readonly local: Record<number, number>;
  readonly refusing: Record<number, number>;
  readonly failures: readonly string[];
  /** The number of 503 responses without the code `store_unavailable` or without Retry-After. */
  readonly badRefusals: number;
  readonly readyWhileAway: {
    readonly local: number;
    readonly refusing: number;
    readonly reasons: readonly string[];
  };
  /** The number of lines that each process logged at the beginning and at the end of the outage. */
  readonly entered: readonly number[];
  readonly left: readonly number[];
  /** The limit of one key, and the number of its requests that the processes with `local` admitted before and during the outage. */
  readonly limit: number;
  readonly admittedBefore: number;
  readonly admittedAway: number;
  /** The count of this key in Redis after the recovery, when all local counts had been written back. */
  readonly dayUsedAfter: number;
  /**
   * Figures of a second key, which is used before and during the outage. After the outage, `restAfter` requests remain below the limit of
   * this key. Then `admittedAfter` requests are admitted.
   */
  readonly restAfter: number;
  readonly admittedAfter: number;
  readonly keysWithoutExpiry: readonly string[];
  /**
   * Times in the gateway, without the time of the upstream, in three periods: while Redis works, from the failure until the circuit breaker
   * opens, and after the circuit breaker has opened.
   */
  readonly p99WithRedisMs: number;
  readonly slowestBeforeBreakerMs: number;
  readonly p99AfterBreakerMs: number;
  /** The time from the repair until every process had logged that Redis is available. */
  readonly backAfterMs: number;
  /** The number of access lines with the source `local`, from the processes with `onFailure: local`. */
  readonly decidedLocally: number;
}

export interface OutageOptions {
  readonly holdMs: number;
  /** Bounds that replace the default bounds of the gateways. */
  readonly bounds?: NonNullable<Tuning['bounds']>;
  /** By default, each gateway is a process. */
  readonly start?: typeof startFleetHere;
}

const limit = 40;

/**
 * Redis fails and recovers under load. Two processes decide locally during the outage, and one process refuses. Redis is available for
 * `holdMs`. Then Redis is unavailable for at least `holdMs`.
 */
export async function measureOutage(
  fault: Fault,
  { holdMs, bounds, start: startGateways = startFleet }: OutageOptions,
): Promise<Outage> {
  const roomy = makeCustomKey(1_000_000_000, 1_000_000_000);
  const tight = makeCustomKey(1_000_000, limit);
  const resumed = makeCustomKey(1_000_000, limit);
  const sentinel = fault === 'failed over by Sentinel' ? await startHeldSentinel() : undefined;
  const fleet = await startGateways({
    ...(sentinel && { place: sentinel.place }),
    starts: [{}, {}, { onFailure: 'refuse' as const }].map((start) => ({
      ...start,
      ...(bounds && { tuning: { bounds } }),
    })),
    relayed: fault === 'slow' || fault === 'failed over',
    config: { keys: [roomy.entry, tight.entry, resumed.entry], bans: { after: 1_000_000 } },
  });
  const [first = '', second = '', refusing = ''] = fleet.origins;
  const locals = fleet.gateways.slice(0, 2);
  const [one, , refuser] = fleet.gateways;
  if (one === undefined || refuser === undefined) throw new Error('three gateways were started');
  const path = '/v1/store/orders';
  const failures: string[] = [];
  /** Sends requests to both local processes. @returns the number of admitted requests */
  const spend = async (secret: string, requestsEach: number): Promise<number> => {
    const loads = [first, second].map((origin) =>
      startLoad({ origins: [origin], secrets: [secret], clients: 4, requestsMax: requestsEach, path }),
    );
    const outcomes = await Promise.all(loads.map(({ done }) => done));
    failures.push(...outcomes.flatMap((outcome) => outcome.failures));
    return countAdmitted(outcomes.flatMap(({ responses }) => responses));
  };
  let replica: Replica | undefined;

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
    if (fault === 'failed over') replica = await startReplica(fleet.redis);
    const before = { tight: await spend(tight.secret, limit / 4), resumed: await spend(resumed.secret, 5) };
    await sleep(holdMs);
    await untilAnswered(refusingLoad, 200);
    await replica?.catchUp();
    await sentinel?.killMaster();
    await breakRedis(fleet, fault, bounds?.storeDeadlineMs ?? defaultBounds.storeDeadlineMs);
    await Promise.all(fleet.gateways.map((gateway) => gateway.line(({ msg }) => msg === 'Redis is away')));
    const away = { tight: await spend(tight.secret, 2 * limit), resumed: await spend(resumed.secret, 5) };
    await sleep(holdMs);
    await untilAnswered(refusingLoad, 503);
    const [ready, unready] = await Promise.all([readiness(one), readiness(refuser)]);

    const repairedAtMs = performance.now();
    await repairRedis(fleet, fault, replica);
    await sentinel?.failOver();
    await Promise.all(fleet.gateways.map((gateway) => gateway.line(({ msg }) => msg === 'Redis is back')));
    const backAfterMs = performance.now() - repairedAtMs;

    const inspector = (await sentinel?.master()) ?? replica?.inspector ?? fleet.inspector;
    const dayUsed = async ({ entry }: typeof tight) =>
      Number(await inspector.hget(`${fleet.prefix}:{${entry.id}}`, 'dayUsed'));
    const survived = fault === 'killed' ? { tight: 0, resumed: 0 } : before;
    const usedOfResumed = survived.resumed + away.resumed;
    await until(
      'local use is written back',
      async () =>
        (await dayUsed(tight)) >= survived.tight + away.tight && (await dayUsed(resumed)) >= usedOfResumed,
    );
    const admittedAfter = await spend(resumed.secret, 2 * limit);
    const [localOutcome, refusingOutcome] = await Promise.all([localLoad.stop(), refusingLoad.stop()]);
    await until('every gateway reports that all is well', async () =>
      (await Promise.all(fleet.gateways.map(readiness))).every(({ body }) => body.status === 'ok'),
    );

    const times = decisionTimes(locals);
    return {
      local: countStatuses(localOutcome.responses),
      refusing: countStatuses(refusingOutcome.responses),
      failures: [...failures, ...localOutcome.failures, ...refusingOutcome.failures],
      badRefusals: refusingOutcome.responses.filter(isBadRefusal).length,
      readyWhileAway: { local: ready.httpStatus, refusing: unready.httpStatus, reasons: ready.body.reasons },
      entered: fleet.gateways.map((gateway) => countLines(gateway, 'Redis is away')),
      left: fleet.gateways.map((gateway) => countLines(gateway, 'Redis is back')),
      limit,
      admittedBefore: before.tight,
      admittedAway: away.tight,
      dayUsedAfter: await dayUsed(tight),
      restAfter: limit - usedOfResumed,
      admittedAfter,
      keysWithoutExpiry: await keysWithoutExpiry(inspector),
      p99WithRedisMs: p99(times.shared),
      slowestBeforeBreakerMs: times.before.at(-1) ?? 0,
      p99AfterBreakerMs: p99(times.after),
      backAfterMs,
      decidedLocally: locals.flatMap(({ lines }) => lines.filter(({ source }) => source === 'local')).length,
    };
  } finally {
    await Promise.all([localLoad.stop(), refusingLoad.stop()]);
    await Promise.all([replica?.stop(), fleet.stop()]);
    await sentinel?.stop();
  }
}

/** Waits until one of the requests gets this status. */
function untilAnswered({ responses }: RunningLoad, status: number): Promise<void> {
  return until(`a request is answered ${status}`, () => responses.some((one) => one.status === status));
}

/** Starts Sentinels that promote a replica only when the test orders it. */
async function startHeldSentinel() {
  const { name, hosts, servers, master, failOver, stop } = await startSentinel();
  const [first] = servers;
  if (first === undefined) throw new Error('three servers were started');
  return {
    place: { sentinel: { name, hosts } },
    async killMaster() {
      // WAIT returns when the replicas have the last write of this connection. The replicas then also have all earlier writes.
      await first.inspector.set('last', 1, 'PX', 60_000);
      await first.inspector.wait(servers.length - 1, 5_000);
      await first.server.kill();
    },
    failOver,
    master: async () => (await master()).inspector,
    stop,
  };
}

async function breakRedis(
  { redis, relay, inspector }: Fleet<RunningGateway>,
  fault: Fault,
  deadlineMs: number,
): Promise<void> {
  switch (fault) {
    case 'killed':
    case 'failed over':
      return redis.kill();
    case 'failed over by Sentinel':
      return;
    case 'frozen':
      return redis.freeze();
    case 'slow':
      return relay?.delay({ toServerMs: deadlineMs, toClientMs: deadlineMs });
    case 'full':
      await inspector.config('SET', 'maxmemory', '1');
      return;
    case 'read-only':
      // A replica of a nonexistent primary serves reads and refuses writes.
      await inspector.replicaof('127.0.0.1', 1);
      return;
  }
}

async function repairRedis(
  { redis, relay, inspector }: Fleet<RunningGateway>,
  fault: Fault,
  replica: Replica | undefined,
): Promise<void> {
  switch (fault) {
    case 'killed':
      return redis.restart();
    case 'failed over by Sentinel':
      return;
    case 'failed over':
      if (replica === undefined || relay === undefined) return;
      await replica.promote();
      relay.switchTo(replica.port);
      return relay.cut();
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

function countAdmitted(responses: readonly LoadResponse[]): number {
  return responses.filter(({ status }) => status === 200).length;
}

function isBadRefusal({ status, headers, body }: LoadResponse): boolean {
  return (
    status !== 200 && !(status === 503 && headers['retry-after'] && body.includes('"store_unavailable"'))
  );
}

function countLines({ lines }: RunningGateway, msg: string): number {
  return lines.filter((line) => line.msg === msg).length;
}

/**
 * The times of decisions in the access lines, ascending, in three lists: decisions by Redis, local decisions before the log reported the
 * outage, and later local decisions.
 */
function decisionTimes(gateways: readonly RunningGateway[]) {
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
