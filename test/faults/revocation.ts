import { setTimeout as sleep } from 'node:timers/promises';
import { directoryOf } from '../support/directory-of.ts';
import { startFleet } from '../support/fleet.ts';
import { startLoad } from '../support/load.ts';
import type { Tuning } from '../support/tuning.ts';
import { until } from '../support/until.ts';
import { disturb, type FormName, startRelayed } from './relayed-redis.ts';

export interface Revocation {
  readonly failures: readonly string[];
  /**
   * The number of requests that arrived while the key was revoked, for each decision: admitted with Redis (which must not happen), refused,
   * or admitted without Redis.
   */
  readonly admittedShared: number;
  readonly refused: number;
  readonly admittedAlone: number;
  /** The number of requests of another key that Redis decided. A large number shows that Redis was mostly reachable. */
  readonly othersShared: number;
}

/** Most delays are shorter than the timeouts for calls to Redis. If a cut connection loses a reply, the command times out. */
const bounds = {
  directoryCachedMs: 2_000,
  directoryLookUpDeadlineMs: 1_000,
  storeDeadlineMs: 1_000,
  storeSilenceMaxMs: 3_000,
} satisfies Tuning['bounds'];

/**
 * Revokes and restores a key repeatedly while three processes use the key. The connections of the processes to Redis are delayed and cut.
 */
export async function measureRevocation({
  form,
  times,
}: {
  readonly form: FormName;
  readonly times: number;
}): Promise<Revocation> {
  const redis = await startRelayed(form);
  const fleet = await startFleet({
    starts: [1, 2, 3].map(() => ({ tuning: { bounds } })),
    config: { keys: { directory: true } },
    place: redis.place,
  });
  const directory = await directoryOf({ ...redis.place, prefix: fleet.prefix });
  /** The editor's connection is also delayed and cut, so the editor repeats each command that may not have run. */
  const editSurely = (more: { readonly disabled: boolean }) =>
    until('the key is changed', () =>
      directory.edit('revoked', more).then(
        () => true,
        () => false,
      ),
    );
  try {
    const limits = { perMinute: 1_000_000_000 };
    for (const id of ['revoked', 'other']) await directory.issue(id, [id], { plan: 'enterprise', limits });
    const load = startLoad({ origins: fleet.origins, secrets: ['revoked', 'other'], clients: 9, pauseMs: 3 });
    const disturbance = disturb(redis.relays);
    const revoked: { readonly fromMs: number; readonly toMs: number }[] = [];
    for (let time = 0; time < times; time++) {
      await sleep(300 + Math.random() * 1_500);
      await editSurely({ disabled: true });
      const fromMs = Date.now();
      await sleep(200 + Math.random() * 500);
      revoked.push({ fromMs, toMs: Date.now() });
      await editSurely({ disabled: false });
    }
    await disturbance.stop();
    const { failures } = await load.stop();
    // At this point, the gateways may not have written their last access lines yet.
    await sleep(1_500);
    const lines = fleet.gateways.flatMap((gateway) => gateway.lines);
    const during = lines.filter(({ keyId, time, totalMs }) => {
      const endMs = Date.parse(String(time));
      // Times in the log are whole milliseconds, so the comparison allows 2 ms.
      const arrivedMs = endMs - Number(totalMs) - 2;
      return keyId === 'revoked' && revoked.some(({ fromMs, toMs }) => arrivedMs > fromMs && endMs < toMs);
    });
    const admitted = during.filter(({ status }) => status === 200);
    return {
      failures,
      admittedShared: admitted.filter(({ source }) => source === 'shared').length,
      refused: during.filter(({ status }) => status === 401).length,
      admittedAlone: admitted.filter(({ source }) => source === 'local').length,
      othersShared: lines.filter(({ keyId, source }) => keyId === 'other' && source === 'shared').length,
    };
  } finally {
    directory.close();
    await fleet.stop();
    await redis.stop();
  }
}
