import { pino } from 'pino';
import { toLimits } from '../../gateway/keys/limits/limit-fields.ts';
import { createLimiter } from '../../gateway/request/limit/limiter.ts';
import { startFleet, type startFleetHere } from '../support/fleet.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { startLoad } from '../support/load.ts';
import { tunedBounds } from '../support/tuned-bounds.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

export interface PlanEdit {
  readonly failures: readonly string[];
  readonly statuses: readonly number[];
  /**
   * The admitted requests of one key, counted three times on one day: when the first limit was exhausted, when the raised limit was
   * exhausted, and when the lowered limit was in effect.
   */
  readonly admitted: { readonly first: number; readonly raised: number; readonly lowered: number };
  /** The number of 200 responses. */
  readonly answered200: number;
  /** The time from the edit until every process had sent a response with the new limit. */
  readonly followedMs: { readonly raised: number; readonly lowered: number };
}

/** Raises and lowers a key's limit under load on three gateways. */
export async function measurePlanEdit(limits: {
  first: number;
  raised: number;
  lowered: number;
  /** By default, each gateway is a process. */
  start?: typeof startFleetHere;
}): Promise<PlanEdit> {
  const run = await startLoadOnOneKey(limits.first, limits.start);
  const withLimit = (perDay: number) => ({ ...run.entry, limits: { perMinute: 1_000_000, perDay } });
  try {
    const first = await run.spent(limits.first);
    await run.fleet.editConfig({ keys: [withLimit(limits.raised)] });
    const raised = await run.spent(limits.raised);
    await run.fleet.editConfig({ keys: [withLimit(limits.lowered)] });
    const lowered = await run.spent(limits.lowered);
    return {
      ...(await run.result()),
      admitted: { first: first.admitted, raised: raised.admitted, lowered: lowered.admitted },
      followedMs: { raised: raised.tookMs, lowered: lowered.tookMs },
    };
  } finally {
    await run.stop();
  }
}

export interface GrantUnderLoad {
  readonly failures: readonly string[];
  readonly statuses: readonly number[];
  readonly answered200: number;
  /**
   * The admitted requests of one key, counted five times on one day: without a grant, with the first grant, without a grant, with the
   * second grant, and without a grant.
   */
  readonly admitted: readonly number[];
  /** The time from the change until every process had sent a response with the new limit. */
  readonly followedMs: { readonly granted: number; readonly taken: number; readonly ended: number };
}

/**
 * A key under load on three gateway processes gets a grant when its limit is exhausted, and then loses the grant. The key then gets a
 * second grant. The load exhausts the second grant before it expires.
 */
export async function measureGrant(limits: {
  readonly plan: number;
  readonly granted: number;
  readonly again: number;
}): Promise<GrantUnderLoad> {
  const run = await startLoadOnOneKey(limits.plan);
  const { fleet, spent } = run;
  const operator = createLimiter({
    redis: { url: fleet.redis.url, prefix: fleet.prefix, onFailure: 'local' },
    log: pino({ level: 'silent' }),
    nowMs: Date.now,
    planOf: () => undefined,
    bounds: tunedBounds(patientStore),
  });
  const grant = async (perDay: number, forMs: number) => {
    const [seconds] = await fleet.inspector.time();
    const untilMs = Number(seconds) * 1_000 + forMs;
    return await operator.adjust(run.entry.id, { grant: { limits: toLimits({ perDay }), untilMs } });
  };
  try {
    const first = await spent(limits.plan);
    await grant(limits.granted, 3_600_000);
    const granted = await spent(limits.granted);
    await operator.adjust(run.entry.id, { grant: 'none' });
    const taken = await spent(limits.plan);
    await grant(limits.again, 3_600_000);
    const again = await spent(limits.again);
    await grant(limits.again, 1_000);
    const ended = await spent(limits.plan);
    return {
      ...(await run.result()),
      admitted: [first, granted, taken, again, ended].map(({ admitted }) => admitted),
      followedMs: { granted: granted.tookMs, taken: taken.tookMs, ended: ended.tookMs },
    };
  } finally {
    await operator.close();
    await run.stop();
  }
}

/** Twelve clients use one key on three gateways. The key has the daily limit `perDay`. */
async function startLoadOnOneKey(perDay: number, startGateways: typeof startFleetHere = startFleet) {
  const key = makeCustomKey(1_000_000, perDay);
  const fleet = await startGateways({
    starts: Array.from({ length: 3 }, () => ({ tuning: { bounds: patientStore } })),
    config: { keys: [key.entry], bans: { after: 1_000_000 } },
  });
  const load = startLoad({
    origins: fleet.origins,
    secrets: [key.secret],
    clients: 12,
    pauseMs: 5,
    path: '/v1/store/orders',
  });
  /** The count comes from Redis, because responses to admitted requests may still be on their way. */
  const admittedSoFar = async () =>
    Number(await fleet.inspector.hget(`${fleet.prefix}:{${key.entry.id}}`, 'dayUsed'));

  return {
    entry: key.entry,
    fleet,
    /**
     * Waits until every process enforces `limit`, and the load has exhausted it. @returns the admitted requests, and the time at which the
     * last process applied the limit
     */
    async spent(limit: number) {
      const fromMs = performance.now();
      const followedAtMs = new Map<string, number>();
      const spentAt = new Set<string>();
      let checked = load.responses.length;
      await until(`a limit of ${limit} on all processes`, () => {
        for (const { origin, status, headers, atMs } of load.responses.slice(checked)) {
          checked += 1;
          if (headers['x-ratelimit-limit'] !== String(limit)) continue;
          if (!followedAtMs.has(origin)) followedAtMs.set(origin, atMs);
          if (status === 429) spentAt.add(origin);
        }
        return spentAt.size === fleet.origins.length;
      });
      return { admitted: await admittedSoFar(), tookMs: Math.max(...followedAtMs.values()) - fromMs };
    },
    async result() {
      const { responses, failures } = await load.stop();
      return {
        failures,
        statuses: [...new Set(responses.map(({ status }) => status))],
        answered200: responses.filter(({ status }) => status === 200).length,
      };
    },
    async stop() {
      await load.stop();
      await fleet.stop();
    },
  };
}
