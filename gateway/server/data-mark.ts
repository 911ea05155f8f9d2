import { randomUUID } from 'node:crypto';
import type { DataLost } from '../fleet/kinds/stores.ts';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { replyOrUndefined } from '../redis/redis-reply.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';

/**
 * Finds that Redis has lost its data, for example because it was started without its files. A key in Redis without expiry marks the data.
 * Another mark, or none, means other data. In a Redis Cluster, only the server with this key is watched.
 */
export function watchDataMark({
  records,
  onLost,
  nowMs,
  bounds,
}: {
  readonly records: RedisConnection | undefined;
  readonly onLost: (lost: DataLost) => void;
  readonly nowMs: () => number;
  readonly bounds: Bounds;
}) {
  let known: string | undefined;
  let lostAtMs: number | undefined;
  const timer = records && setInterval(() => void check(records), bounds.dataMarkIntervalMs).unref();

  async function check({ commands, prefix, isReady }: RedisConnection): Promise<void> {
    const name = redisKeys.dataMark.name(prefix);
    const own = randomUUID();
    const read = async () => (await commands.set(name, own, 'NX', 'GET')) ?? own;
    const found = await replyOrUndefined({ isReady }, [name], read, bounds.storePatientDeadlineMs);
    if (found === undefined) return;
    if (known !== undefined && known !== found) {
      lostAtMs = nowMs();
      onLost({ kind: 'store_emptied', mark: found });
    }
    known = found;
  }

  return {
    /** The time of the last loss, epoch ms, as long as operators are told of it. */
    lostAtMs(): number | undefined {
      const isTold = lostAtMs !== undefined && nowMs() - lostAtMs < bounds.dataLostShownMs;
      return isTold ? lostAtMs : undefined;
    },
    close: () => clearInterval(timer),
  };
}
