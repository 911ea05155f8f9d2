import type { RedisConnection } from '../../../redis/redis-connection.ts';
import { replyOrUndefined } from '../../../redis/redis-reply.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { webhooksKeys } from '../redis-keys.ts';

export type ScanState = ReturnType<typeof createScanState>;

/**
 * The state of the scans, which all processes share. The promises never reject.
 *
 * The lead is a key that expires, so another process takes over when the leading process dies. Two processes may scan at the same time after
 * a pause of the leading process. The identity of the notices then prevents a second event.
 */
export function createScanState({
  redis,
  processId,
  bounds,
}: {
  readonly redis: RedisConnection;
  readonly processId: string;
  readonly bounds: Pick<Bounds, 'noticeScanKeptMs' | 'storePatientDeadlineMs'>;
}) {
  const { commands, prefix } = redis;
  const scans = webhooksKeys.noticeScans.name(prefix);
  const leader = webhooksKeys.noticeScanLeader.name(prefix);

  function attempt<T>(call: () => Promise<T>): Promise<T | undefined> {
    return replyOrUndefined(redis, [scans], call, bounds.storePatientDeadlineMs);
  }

  return {
    /** Whether this process may scan now. If so, this process alone may scan for `forMs`, or until it leaves. */
    async lead(forMs: number): Promise<boolean> {
      const taken = await attempt(() => commands.set(leader, processId, 'PX', forMs, 'NX'));
      if (taken === 'OK') return true;
      if ((await attempt(() => commands.get(leader))) !== processId) return false;
      return (await attempt(() => commands.pexpire(leader, forMs))) === 1;
    },
    /** The end of the last complete scan of this kind, epoch ms; `never` if there was none; undefined if Redis is unavailable. */
    async scannedMs(kind: string): Promise<number | 'never' | undefined> {
      const written = await attempt(() => commands.hget(scans, kind));
      if (written === undefined) return undefined;
      const untilMs = Number(written ?? Number.NaN);
      return Number.isFinite(untilMs) ? untilMs : 'never';
    },
    async noteScanned(kind: string, untilMs: number): Promise<void> {
      await attempt(() =>
        Promise.all([
          commands.hset(scans, kind, Math.round(untilMs)),
          commands.pexpire(scans, bounds.noticeScanKeptMs),
        ]),
      );
    },
    /** Lets another process scan. */
    async leave(): Promise<void> {
      if ((await attempt(() => commands.get(leader))) === processId)
        await attempt(() => commands.del(leader));
    },
  };
}
