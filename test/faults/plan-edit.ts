import { startFleet } from '../support/fleet.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { startLoad } from '../support/load.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

export interface PlanEdit {
  readonly failures: readonly string[];
  readonly statuses: readonly number[];
  /** Requests of one key admitted in one day, after each step: first limit spent, raised limit spent, limit lowered. */
  readonly admitted: { readonly first: number; readonly raised: number; readonly lowered: number };
  /** How many responses were 200. */
  readonly answered200: number;
  /** From the edit until every process had sent a response with the new limit. */
  readonly followedMs: { readonly raised: number; readonly lowered: number };
}

/** Raises and lowers a key's limit under load on three gateway processes. */
export async function measurePlanEdit(limits: {
  first: number;
  raised: number;
  lowered: number;
}): Promise<PlanEdit> {
  const key = makeCustomKey(1_000_000, limits.first);
  const withLimit = (perDay: number) => ({ ...key.entry, limits: { perMinute: 1_000_000, perDay } });
  const fleet = await startFleet({
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
  /** From Redis, since responses to admitted requests may still be on their way. */
  const admittedSoFar = async () =>
    Number(await fleet.inspector.hget(`${fleet.prefix}:{${key.entry.id}}`, 'dayUsed'));

  /** Waits until `limit` is in force and spent on every process; returns what was admitted, and when the last followed. */
  async function spent(limit: number) {
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
  }

  try {
    const first = await spent(limits.first);
    await fleet.editConfig({ keys: [withLimit(limits.raised)] });
    const raised = await spent(limits.raised);
    await fleet.editConfig({ keys: [withLimit(limits.lowered)] });
    const lowered = await spent(limits.lowered);
    const { responses, failures } = await load.stop();
    return {
      failures,
      statuses: [...new Set(responses.map(({ status }) => status))],
      admitted: { first: first.admitted, raised: raised.admitted, lowered: lowered.admitted },
      answered200: responses.filter(({ status }) => status === 200).length,
      followedMs: { raised: raised.tookMs, lowered: lowered.tookMs },
    };
  } finally {
    await load.stop();
    await fleet.stop();
  }
}
