import { request } from 'undici';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { digestSecret } from '../../gateway/shared/secrets.ts';
import { askAdmin, makeToken } from '../support/admin-client.ts';
import { startFleet } from '../support/fleet.ts';
import { startGateway } from '../support/gateway-process.ts';
import { residentBytes } from '../support/process-figures.ts';

export interface ManyKeys {
  /** The time from the start of the process until it listens. */
  readonly startMs: number;
  readonly residentBytes: { readonly started: number; readonly afterRequests: number };
  readonly perSecond: number;
  /** The duration of the slowest first request of a key, and the duration of a request to list keys. */
  readonly slowestFirstMs: number;
  readonly listMs: number;
  readonly statuses: Record<number, number>;
  /** The memory of Redis for all keys together. */
  readonly redisBytes: number;
}

const batch = 5_000;

/** Measures a process with a directory of `keys` keys, some of which send requests. */
export async function measureManyKeys(options: {
  readonly keys: number;
  readonly used: number;
  /** The number of concurrent requests, by default 1. */
  readonly atOnce?: number;
}): Promise<ManyKeys> {
  const token = makeToken('read');
  const fleet = await startFleet({
    starts: [],
    config: {
      keys: { directory: true },
      admin: { host: '127.0.0.1', port: 0, tokens: [token.entry] },
    },
  });
  try {
    await fill(fleet.inspector, fleet.prefix, options.keys);
    const redis = { url: fleet.redis.url, prefix: fleet.prefix };
    const startedMs = performance.now();
    const gateway = await startGateway({ ...fleet.config, redis });
    const startMs = performance.now() - startedMs;
    try {
      const pid = gateway.child.pid ?? 0;
      const started = residentBytes(pid);
      const statuses: Record<number, number> = {};
      let slowestFirstMs = 0;
      let use = 0;
      async function sendRequests(): Promise<void> {
        while (use < options.used) {
          const key = Math.floor((use * options.keys) / options.used);
          const isWarm = use > 100;
          use += 1;
          const sentMs = performance.now();
          const headers = { authorization: `Bearer ${secretOf(key)}` };
          const { statusCode, body } = await request(`${gateway.baseUrl}/pets`, { headers });
          await body.dump();
          // The first requests of a process are not measured, because they are slow.
          if (isWarm) slowestFirstMs = Math.max(slowestFirstMs, performance.now() - sentMs);
          statuses[statusCode] = (statuses[statusCode] ?? 0) + 1;
        }
      }
      const sentMs = performance.now();
      await Promise.all(Array.from({ length: options.atOnce ?? 1 }, sendRequests));
      const perSecond = (options.used * 1_000) / (performance.now() - sentMs);
      const afterRequests = residentBytes(pid);
      const listedMs = performance.now();
      await askAdmin(Number(new URL(gateway.adminUrl).port), '/api/v1/keys', { token: token.token });
      const listMs = performance.now() - listedMs;
      const memory = await fleet.inspector.info('memory');
      const redisBytes = Number(/^used_memory:(\d+)/m.exec(memory)?.[1]);
      return {
        startMs,
        residentBytes: { started, afterRequests },
        perSecond,
        slowestFirstMs,
        listMs,
        statuses,
        redisBytes,
      };
    } finally {
      await gateway.stop('SIGKILL');
    }
  } finally {
    await fleet.stop();
  }
}

function secretOf(key: number): string {
  return `secret ${key}`;
}

/** Writes the directory's records in large batches, because a million single writes would take minutes. */
async function fill(
  redis: Awaited<ReturnType<typeof startFleet>>['inspector'],
  prefix: string,
  keys: number,
): Promise<void> {
  const ids = redisKeys.directoryIds.name(prefix);
  const nowMs = Date.now();
  for (let from = 0; from < keys; from += batch) {
    const pipeline = redis.pipeline();
    for (let key = from; key < Math.min(keys, from + batch); key++) {
      const id = `customer-${String(key).padStart(7, '0')}`;
      const digest = digestSecret(secretOf(key));
      const secrets = [{ digest, createdMs: nowMs }];
      const record = { plan: 'free', name: `Customer ${key}`, disabled: false, createdMs: nowMs, secrets };
      // A tag has the same form as the tags that `list-id.lua` makes.
      const tag = `${nowMs.toString(16)}.${String(key).padStart(6, '0')}`;
      pipeline.zadd(ids, 0, `${id}\0${tag}`);
      pipeline.hset(redisKeys.directoryRecord.name(prefix, id), {
        tag,
        revision: 1,
        record: JSON.stringify({ ...record, changedMs: nowMs }),
      });
      pipeline.set(redisKeys.directoryDigest.name(prefix, digest), `${id}\0${tag}`);
    }
    await pipeline.exec();
  }
}
