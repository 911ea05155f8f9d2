import { setTimeout as sleep } from 'node:timers/promises';
import { type LimitsByField, toLimits } from '../../gateway/keys/limits/limit-fields.ts';
import { connectRedis, type RedisPlace } from '../support/connect-redis.ts';
import { startFleet, startFleetHere } from '../support/fleet.ts';
import { makeKey } from '../support/gateway-process.ts';
import { type LoadResponse, startLoad } from '../support/load.ts';
import type { RedisForm } from '../support/redis-forms.ts';
import { patientStore, type Tuning } from '../support/tuning.ts';

export interface ExactnessOptions {
  readonly requests: number;
  readonly clients: number;
  /** The load must not exhaust a window between the shortest and the longest window, because `countWindows` cannot count such a window. */
  readonly limits: LimitsByField;
  readonly windowsMs?: NonNullable<Tuning['windowsMs']>;
  /** The time from the start of the load to the end of the shortest window. */
  readonly startBeforeEndMs: number;
  /** Default: one server. */
  readonly form?: RedisForm;
  /** Whether the gateways run in the process of the test. By default, each gateway has a process of its own. */
  readonly isHere?: boolean;
}

export interface Exactness {
  readonly responses: number;
  readonly failures: readonly string[];
  /** The windows that the headers of the responses state. */
  readonly windows: readonly WindowCount[];
  readonly admitted: number;
  /**
   * Sums over all windows. `over` is the number of requests that were admitted above the limit. `under` is the number of units that were
   * left in windows that refused a request.
   */
  readonly over: number;
  readonly under: number;
  /** The number of admitted requests with the same `remaining` as another request in the same window. */
  readonly sameRemaining: number;
  /** The number of requests that Redis counts in the longest window. */
  readonly longestUsed: number;
  readonly perSecond: number;
}

interface WindowCount {
  readonly limit: number;
  readonly resetSeconds: number;
  readonly admitted: number;
  readonly refused: number;
}

/** Many clients use one key on three gateways, whose clocks are 90 s behind, correct, and 90 s ahead. */
export async function measureExactness(options: ExactnessOptions): Promise<Exactness> {
  const { requests, clients, limits, windowsMs, startBeforeEndMs, form, isHere = false } = options;
  const stated = toLimits(limits);
  const [shortest, longest] = [stated.at(0), stated.at(-1)];
  if (shortest === undefined || longest === undefined) throw new Error('no limits');
  const key = makeKey({ plan: 'enterprise', limits });
  const redis = await form?.start();
  const fleet = await (isHere ? startFleetHere : startFleet)({
    ...(redis && { place: redis.place }),
    starts: [-90_000, 0, 90_000].map((clockSkewMs) => ({
      tuning: { clockSkewMs, bounds: patientStore, ...(windowsMs && { windowsMs }) },
    })),
    config: { keys: [key.entry], bans: { after: 1_000_000 } },
  });
  try {
    await sleepUntilBeforeEnd(windowsMs?.[shortest.window] ?? 60_000, startBeforeEndMs);
    const startedMs = performance.now();
    const load = startLoad({
      origins: fleet.origins,
      secrets: [key.secret],
      clients,
      requestsMax: requests,
      path: '/v1/store/orders',
    });
    const { responses, failures } = await load.done;
    const seconds = (performance.now() - startedMs) / 1000;
    const name = `${fleet.prefix}:{${key.entry.id}}`;
    const hash = redis ? await hashIn(redis.place, name) : await fleet.inspector.hgetall(name);
    return {
      ...countWindows(responses, longest.max),
      failures,
      longestUsed: Number(hash[`${longest.window}Used`]),
      perSecond: responses.length / seconds,
    };
  } finally {
    await fleet.stop();
    await redis?.stop();
  }
}

async function hashIn(place: RedisPlace, name: string): Promise<Record<string, string>> {
  const connection = await connectRedis({ prefix: '', place });
  const hash = await connection.commands.hgetall(name);
  connection.close();
  return hash;
}

/**
 * Counts the responses of each window. The limit and the reset in a response's headers identify the window. A request counts in the
 * shortest window and in the longest window. All requests are in the same longest window.
 */
function countWindows(responses: readonly LoadResponse[], longestMax: number) {
  const byWindow = Map.groupBy(responses, ({ headers }) =>
    [headers['x-ratelimit-limit'], headers['x-ratelimit-reset']].join(' '),
  );
  const admitted = responses.filter(isAdmitted).length;
  let sameRemaining = 0;
  const windows = [...byWindow].map(([name, all]): WindowCount => {
    const [limit = 0, resetSeconds = 0] = name.split(' ').map(Number);
    const own = all.filter(isAdmitted);
    sameRemaining += own.length - new Set(own.map(({ headers }) => headers['x-ratelimit-remaining'])).size;
    const refused = all.filter(({ status }) => status === 429).length;
    return { limit, resetSeconds, admitted: limit === longestMax ? admitted : own.length, refused };
  });
  const sum = (of: (window: WindowCount) => number) =>
    windows.reduce((total, window) => total + of(window), 0);
  return {
    responses: responses.length,
    windows,
    admitted,
    over: sum((window) => Math.max(0, window.admitted - window.limit)),
    under: sum((window) => (window.refused > 0 ? Math.max(0, window.limit - window.admitted) : 0)),
    sameRemaining,
  };
}

function isAdmitted({ status }: LoadResponse): boolean {
  return status === 200;
}

async function sleepUntilBeforeEnd(windowMs: number, leadMs: number): Promise<void> {
  const untilEndMs = windowMs - (Date.now() % windowMs);
  await sleep(untilEndMs > leadMs ? untilEndMs - leadMs : untilEndMs + windowMs - leadMs);
}
