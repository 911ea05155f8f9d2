import { setTimeout as sleep } from 'node:timers/promises';
import { makeToken } from '../support/admin-client.ts';
import { fetchOnce } from '../support/fetch-once.ts';
import { startFleet } from '../support/fleet.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { countStatuses, startLoad } from '../support/load.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { disturb, type FormName, startRelayed } from './relayed-redis.ts';

export interface RecordedUsage {
  /** The responses by status, and the number of requests without a response. */
  readonly statuses: Record<number, number>;
  readonly failures: readonly string[];
  /** The number of requests in the usage record of all keys. Each of two processes reads the record. */
  readonly recorded: readonly number[];
  /** The number of times that the Redis connections were cut. */
  readonly cuts: number;
}

const flushMs = 500;
/** Delays are shorter than the timeouts for calls to Redis. If a cut connection loses a reply, the command times out. */
const bounds = {
  storeDeadlineMs: 1_000,
  storeSilenceMaxMs: 3_000,
  usageFlushIntervalMs: flushMs,
  usageSlicesPerFlush: 5,
} satisfies Tuning['bounds'];

/** Two processes record the usage of twelve keys while replies from Redis are late and Redis connections are cut. */
export async function measureUsage({
  form,
  requests,
}: {
  readonly form: FormName;
  readonly requests: number;
}): Promise<RecordedUsage> {
  const redis = await startRelayed(form);
  const keys = Array.from({ length: 12 }, () => makeCustomKey(1_000_000_000, 1_000_000_000));
  const token = makeToken();
  const fleet = await startFleet({
    starts: [1, 2].map(() => ({ tuning: { bounds } })),
    config: {
      keys: keys.map(({ entry }) => entry),
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    },
    place: redis.place,
  });
  const headers = { authorization: `Bearer ${token.token}` };
  const recordedBy = async (adminUrl: string): Promise<number> => {
    const counts = keys.map(async ({ entry }) => {
      const response = await fetchOnce(`${adminUrl}/api/v1/keys/${entry.id}/usage?step=day`, headers);
      const { rows = [] } = (await response.json()) as { rows?: { offered: number }[] };
      return rows.reduce((sum, { offered }) => sum + offered, 0);
    });
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  };
  try {
    const secrets = keys.map(({ secret }) => secret);
    const disturbance = disturb(redis.relays);
    const load = startLoad({
      origins: fleet.origins,
      secrets,
      clients: 12,
      pauseMs: 10,
      requestsMax: requests,
    });
    const { responses, failures } = await load.done;
    const { cuts } = await disturbance.stop();
    const readAll = () => Promise.all(fleet.gateways.map(({ adminUrl }) => recordedBy(adminUrl)));
    await until('all counted requests are recorded', async () =>
      (await readAll()).every((count) => count >= responses.length),
    );
    // If a process sends a batch again, Redis may count the batch twice. The pause lets a repeated batch arrive before the last comparison.
    await sleep(3 * flushMs);
    return { statuses: countStatuses(responses), failures, recorded: await readAll(), cuts };
  } finally {
    await fleet.stop();
    await redis.stop();
  }
}
