import { setTimeout as sleep } from 'node:timers/promises';
import { type LimitsByField, toLimits } from '../../gateway/config/schema/limit-fields.ts';
import { startFleet } from '../support/fleet.ts';
import { makeKey } from '../support/gateway-process.ts';
import { type LoadResponse, startLoad } from '../support/load.ts';
import { patientStore, type Tuning } from '../support/tuning.ts';

export interface ExactnessOptions {
  readonly requests: number;
  readonly clients: number;
  /** Of the shortest window and of the longest; any between must be out of reach. */
  readonly limits: LimitsByField;
  readonly windowsMs?: NonNullable<Tuning['windowsMs']>;
  /** The load starts this long before the shortest window ends, so that it crosses into the next. */
  readonly startBeforeEndMs: number;
}

export interface Exactness {
  readonly responses: number;
  readonly failures: readonly string[];
  /** Windows that were in force on at least one answer. */
  readonly windows: readonly WindowCount[];
  readonly admitted: number;
  /** Admitted beyond the limit, and not admitted though a request of that window was refused; of all windows. */
  readonly over: number;
  readonly under: number;
  /** Admitted requests that were told the same `remaining` as another of their window. */
  readonly toldTwice: number;
  /** What Redis has counted in the longest window. */
  readonly longestUsed: number;
  readonly perSecond: number;
}

interface WindowCount {
  readonly limit: number;
  readonly resetSeconds: number;
  readonly admitted: number;
  readonly refused: number;
}

/** Many clients on one key over three gateway processes, whose clocks are 90 s behind, right, and 90 s ahead. */
export async function measureExactness(options: ExactnessOptions): Promise<Exactness> {
  const { requests, clients, limits, windowsMs, startBeforeEndMs } = options;
  const stated = toLimits(limits);
  const [shortest, longest] = [stated.at(0), stated.at(-1)];
  if (shortest === undefined || longest === undefined) throw new Error('no limits');
  const key = makeKey({ plan: 'enterprise', limits });
  const fleet = await startFleet({
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
    const hash = await fleet.inspector.hgetall(`${fleet.prefix}:{${key.entry.id}}`);
    return {
      ...countWindows(responses, longest.max),
      failures,
      longestUsed: Number(hash[`${longest.window}Used`]),
      perSecond: responses.length / seconds,
    };
  } finally {
    await fleet.stop();
  }
}

/**
 * Counts by the window in force, which its limit and reset name: the three headers always come from one window. What
 * was admitted while the shortest was in force counts in the longest as well; all of the load lies in one of the longest.
 */
function countWindows(responses: readonly LoadResponse[], longestMax: number) {
  const byWindow = Map.groupBy(responses, ({ headers }) =>
    [headers['x-ratelimit-limit'], headers['x-ratelimit-reset']].join(' '),
  );
  const admitted = responses.filter(isAdmitted).length;
  let toldTwice = 0;
  const windows = [...byWindow].map(([name, all]): WindowCount => {
    const [limit = 0, resetSeconds = 0] = name.split(' ').map(Number);
    const own = all.filter(isAdmitted);
    toldTwice += own.length - new Set(own.map(({ headers }) => headers['x-ratelimit-remaining'])).size;
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
    toldTwice,
  };
}

function isAdmitted({ status }: LoadResponse): boolean {
  return status === 200;
}

async function sleepUntilBeforeEnd(windowMs: number, leadMs: number): Promise<void> {
  const untilEndMs = windowMs - (Date.now() % windowMs);
  await sleep(untilEndMs > leadMs ? untilEndMs - leadMs : untilEndMs + windowMs - leadMs);
}
