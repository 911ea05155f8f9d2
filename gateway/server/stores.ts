import type { Logger } from 'pino';
import { partsOf } from '../capabilities/interfaces/join-parts.ts';
import type { Opened } from '../capabilities/interfaces/operators.ts';
import type { ProcessPart, ProcessSources } from '../capabilities/interfaces/running.ts';
import { processParts } from '../capabilities/lists/parts.ts';
import type { Notice } from '../fleet/kinds/kinds.ts';
import { createKeyDirectory, type KeyDirectory } from '../keys/directory/key-directory.ts';
import { createBlockStore } from '../keys/leaks/blocked/block-store.ts';
import { type BlockedSecrets, createBlockedSecrets } from '../keys/leaks/blocked/blocked-secrets.ts';
import { createRecordedOnly } from '../keys/leaks/blocked/recorded-only.ts';
import { openRedis } from '../redis/open-redis.ts';
import type { RedisConnection } from '../redis/redis-connection.ts';
import { createLimiter, type Limiter } from '../request/limit/limiter.ts';
import type { Settings } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import { createUsage, type Usage } from '../usage/usage.ts';

/** The stores of a process. Counts and usage are in Redis or in memory. Everything else is in Redis. */
export interface Stores {
  readonly limiter: Limiter;
  /** Undefined without a key directory. */
  readonly directory: KeyDirectory | undefined;
  readonly blocked: BlockedSecrets;
  readonly capabilities: Capabilities;
  /** Undefined when no usage is recorded. */
  readonly usage: Usage | undefined;
  /**
   * The connection for records; undefined without Redis. A client request waits for a command on this connection only if it reports a leaked
   * secret, or if a secret of its key has just leaked.
   */
  readonly records: RedisConnection | undefined;
  /**
   * Sends the decisions and the usage that are not stored yet, for a flush of the whole fleet (`fleet/flush/flush-fleet.ts`). `flushed` then
   * returns the number of the flush. If a call is in progress or the store fails, the caller must call again.
   */
  sendCounts(flush: number): Promise<void>;
  /** Returns the number of the last flush for which all counts were stored; undefined before the first flush. */
  flushed(): number | undefined;
  /** Sends the counts and usage that are not stored yet. The time for this is limited. */
  flush(): Promise<void>;
  close(): void;
}

type Capabilities = Opened<typeof processParts>;

function openCapabilities(sources: ProcessSources): Capabilities {
  const all = Object.entries<(sources: ProcessSources) => ProcessPart>(processParts);
  return Object.fromEntries(all.map(([name, open]) => [name, open(sources)])) as Capabilities;
}

export interface StoresOptions {
  /** The initial settings. Changes of the store's address need a restart. */
  readonly settings: () => Settings;
  readonly log: Logger;
  /** Called for each logged event of bans, Redis and the usage record. */
  readonly onEvent: (notice: Notice) => void;
  readonly bounds: Bounds;
  /** The gateway's clock, epoch ms. */
  readonly nowMs: () => number;
  /** If present, bans are logged by this logger instead of `log`. */
  readonly banLog?: Logger | undefined;
}

export function openStores({ settings, log, onEvent, bounds, nowMs, banLog }: StoresOptions): Stores {
  const { redis, directory: hasDirectory, usage: usageSettings } = settings();
  // Look-ups have a separate connection, so that they do not wait behind reads of usage records.
  const directoryRecords = hasDirectory && redis ? openRedis(redis, bounds) : undefined;
  const directory =
    directoryRecords &&
    createKeyDirectory({
      redis: directoryRecords,
      nowMs,
      storeNowMs: () => limiter.storeNowMs(),
      log,
      bounds,
    });
  const records = redis && openRedis(redis, bounds);
  const limiter = createLimiter({
    log,
    bounds,
    nowMs,
    planOf,
    onEvent: (event) => onEvent(event.kind === 'ban' ? { ...event, policy: settings().bans } : event),
    banLog,
    redis,
    leaksReadMs: () => blocked.readMs(),
  });
  const isInConfiguration = (digest: string) => settings().keys.find(digest) !== undefined;
  const blocked =
    records === undefined
      ? createRecordedOnly(isInConfiguration)
      : createBlockedSecrets({
          store: createBlockStore({ redis: records, bounds }),
          isInConfiguration,
          bounds,
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
          onLongUse: (use) => onEvent({ kind: 'dead_secret_used', plan: planOf(use.keyId), ...use }),
          bounds,
        });

  const capabilities = openCapabilities({
    redis: records,
    counts: limiter.countsOfKeys,
    directory,
    blocked,
    usage,
    settings,
    nowMs: limiter.storeNowMs,
    log,
    bounds,
  });

  function planOf(keyId: string): string | undefined {
    return settings().keys.get(keyId)?.plan ?? directory?.planOf(keyId);
  }

  let flushed: number | undefined;
  let isSending = false;

  async function sendCounts(flush: number): Promise<void> {
    if (isSending) return;
    isSending = true;
    try {
      const sent = await Promise.all([limiter.sendLocal(), usage === undefined || usage.recorder.send()]);
      if (!sent.includes(false)) flushed = flush;
    } finally {
      isSending = false;
    }
  }

  function reportPause(reason: string | undefined): void {
    if (reason === undefined) {
      log.info('the usage record resumes');
      onEvent({ kind: 'recording_resumed' });
    } else {
      log.warn({ reason }, 'the usage record pauses');
      onEvent({ kind: 'recording_paused', reason });
    }
  }

  return {
    limiter,
    directory,
    blocked,
    capabilities,
    usage,
    records,
    sendCounts,
    flushed: () => flushed,
    async flush() {
      await Promise.all([
        limiter.close(),
        usage?.close(),
        ...partsOf(capabilities).map((part) => part.flush?.()),
      ]);
    },
    close() {
      blocked.close();
      records?.close();
      directoryRecords?.close();
    },
  };
}
