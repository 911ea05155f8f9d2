import type { Logger } from 'pino';
import type { Happening } from '../fleet/event-text.ts';
import { createKeyDirectory, type KeyDirectory } from '../keys/directory/key-directory.ts';
import { openRedis } from '../redis/open-redis.ts';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { createLimiter, type Limiter } from '../request/limit/limiter.ts';
import type { Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createUsage, type Usage } from '../usage/usage.ts';

/** What is kept of keys, in Redis or in memory. Requests are decided on it, and operators read and change it. */
export interface Stores {
  readonly limiter: Limiter;
  /** Undefined: every key is in the configuration. */
  readonly directory: KeyDirectory | undefined;
  /** Undefined: nothing is recorded. */
  readonly usage: Usage | undefined;
  /** For what is on no request's path; undefined without Redis. */
  readonly records: RedisConnection | undefined;
  /** Sends what is left to send of counts and usage, within their bounds. */
  flush(): Promise<void>;
  /** Disconnects. */
  close(): void;
}

export interface StoresOptions {
  /** Those in force. Where the stores are, is read once. */
  readonly settings: () => Settings;
  readonly log: Logger;
  /** Hears what is logged of bans, of Redis and of the usage record. */
  readonly onEvent: (happening: Happening) => void;
  readonly bounds: Bounds;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  /** Where bans are logged, in place of `log`. */
  readonly banLog?: Logger | undefined;
}

export function openStores({ settings, log, onEvent, bounds, nowMs, banLog }: StoresOptions): Stores {
  const { redis, directory: hasDirectory, usage: usageSettings } = settings();
  // A connection of its own: a look-up must not wait behind a page of the usage record.
  const directoryRecords = hasDirectory && redis ? openRedis(redis, bounds) : undefined;
  const directory = hasDirectory
    ? createKeyDirectory({
        redis: directoryRecords,
        nowMs,
        storeNowMs: () => limiter.storeNowMs(),
        log,
        bounds,
      })
    : undefined;
  const records = redis && openRedis(redis, bounds);
  const limiter = createLimiter({
    log,
    bounds,
    nowMs,
    planOf: (keyId) => settings().keys.get(keyId)?.plan ?? directory?.planOf(keyId),
    onEvent: (event) => onEvent(event.kind === 'ban' ? { ...event, policy: settings().bans } : event),
    banLog,
    redis,
  });
  const usage =
    usageSettings.keepDays === 0
      ? undefined
      : createUsage({
          redis: records,
          keepDays: usageSettings.keepDays,
          minuteMs: bounds.windowsMs.minute,
          nowMs: limiter.storeNowMs,
          onPause: reportPause,
          bounds,
        });

  function reportPause(reason: string | undefined): void {
    if (reason === undefined) {
      log.info('the usage record goes on');
      onEvent({ kind: 'recording_resumed' });
    } else {
      log.warn({ reason }, 'the usage record pauses');
      onEvent({ kind: 'recording_paused', reason });
    }
  }

  return {
    limiter,
    directory,
    usage,
    records,
    async flush() {
      await Promise.all([limiter.close(), usage?.close()]);
    },
    close() {
      records?.close();
      directoryRecords?.close();
    },
  };
}
