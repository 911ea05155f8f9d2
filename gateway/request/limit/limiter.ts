import type { Logger } from 'pino';
import type { BanEvent } from '../../fleet/kinds/bans.ts';
import type { QuotaThreshold } from '../../fleet/kinds/key-notices.ts';
import type { StoreEvent } from '../../fleet/kinds/stores.ts';
import type { Change } from '../../quota/adjust.ts';
import type { ToldMark } from '../../quota/thresholds.ts';
import { faultPlaceOf } from '../../redis/fault-place.ts';
import { watchMissingCommands } from '../../redis/missing-commands.ts';
import { openRedis } from '../../redis/open-redis.ts';
import { redisKeys } from '../../redis/redis-keys.ts';
import { addressGroup } from '../../shared/addresses/address-group.ts';
import type { DecisionSource, Key, KeyStatus, RedisSettings } from '../../shared/model.ts';
import { createWarnOfKey } from '../../shared/structures/warn-of-key.ts';
import { withinDeadline } from '../../shared/structures/within-deadline.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createBanLog } from './ban-log.ts';
import type { CountsOfKeys } from './counts-of-keys.ts';
import { createKeyLedger } from './key-ledger.ts';
import { createKeyLimiter } from './key-limiter.ts';
import { createMinuteBucket } from './minute-bucket.ts';
import {
  createStatusReader,
  type KeyInMemory,
  type KeysRead,
  statusInMemory,
  statusOf,
} from './read-statuses.ts';
import type { Unavailable } from './stages/open-call.ts';
import { createMemoryQuotaStore } from './store/memory-quota-store.ts';
import type { QuotaStore, StoreFailure } from './store/quota-store.ts';
import { createRedisQuotaStore } from './store/redis-quota-store.ts';
import { createStoreClock } from './store/store-clock.ts';
import type { StoreHealth, StorePart } from './store/store-health.ts';
import { type WatchedState, watchStore } from './store/store-watch.ts';
import { createThresholdReports } from './threshold-reports.ts';

export type Limiter = ReturnType<typeof createLimiter>;

/** The kind of the store and its availability, for `/readyz`. */
export type StoreState =
  | { readonly kind: 'memory' }
  | ({
      readonly kind: 'redis';
      readonly onFailure: 'local' | 'refuse';
      /** Required commands that the ACL of the Redis user forbids. */
      readonly missingCommands?: readonly string[];
      /** Why a Redis server decides with a script instead of a Redis Function. Absent if all servers run the function. */
      readonly functionRefusal?: string;
    } & WatchedState);

export type StoreCounts = ReturnType<Limiter['counts']>;

export interface LimiterDeps {
  /** The Redis settings. Absent when the store is in memory. */
  readonly redis?: RedisSettings | undefined;
  readonly log: Logger;
  /** This process's clock, epoch ms. Decisions use Redis's clock if the store is Redis. */
  readonly nowMs: () => number;
  /** Returns the plan of a key, for the log. */
  readonly planOf: (keyId: string) => string | undefined;
  /** Called with each logged event about bans or Redis, and with each threshold that a key has reached. */
  readonly onEvent?: ((event: BanEvent | StoreEvent | QuotaThreshold) => void) | undefined;
  /** The log for bans, if it differs from `log`. */
  readonly banLog?: Logger | undefined;
  /** The time of the last leaked secret that this process knows, on the store's clock, epoch ms (`keys/leaks/blocked/`). By default 0. */
  readonly leaksReadMs?: (() => number) | undefined;
  readonly bounds: Bounds;
}

/** Creates the limiter, which decides whether a request is within the limits of its key. */
export function createLimiter({ redis, log, nowMs, planOf, onEvent, bounds, ...deps }: LimiterDeps) {
  const { windowsMs } = bounds;
  const ledger = createKeyLedger(bounds);
  const clock = createStoreClock(nowMs);
  const backing = redis === undefined ? openMemory() : openShared(redis);
  const buckets = openBuckets(backing.counts.openBucket);
  const source: DecisionSource = redis === undefined ? 'memory' : 'shared';
  const bans = createBanLog({ log: deps.banLog ?? log, nowMs: clock.nowMs, planOf, onEvent, bounds });
  const thresholds = createThresholdReports({ nowMs, planOf, onEvent, bounds });
  const warn = createWarnOfKey(log, { idsMax: bounds.warnedKeysMax });
  let decidedAlone = 0;
  let decidedLocally = 0;

  const keys = createKeyLimiter({
    store: backing.store,
    source,
    health: backing.health,
    ledger,
    clock,
    nowMs,
    bounds,
    onFailure: redis?.onFailure ?? 'local',
    leaksReadMs: deps.leaksReadMs ?? (() => 0),
    bans,
    thresholds,
    onUnusable(keyId) {
      const name = redisKeys.quota.name(redis?.prefix ?? '', keyId);
      const meanwhile = redis?.onFailure === 'refuse' ? 'the key gets 503' : 'each process counts on its own';
      warn(
        keyId,
        `the Redis key ${name} does not contain the counts of this API key: delete the Redis key; until then ${meanwhile}`,
      );
    },
    onDecidedAlone(requests) {
      decidedAlone += requests;
      decidedLocally += requests;
    },
  });
  const readStatuses = createStatusReader({ ...backing, reach: backing.health.reach, windowsMs });
  const reportTimer = setInterval(keys.report, bounds.reportIntervalMs).unref();
  const renewalTimer = setInterval(keys.renewLeases, bounds.leaseRenewalMs / 2).unref();

  return {
    /**
     * Decides one request of a valid key, given its cost in units. Requests of one key in one turn of the event loop are decided
     * together. The decision is `stale` if the key has changed, or if one of its secrets has leaked, since the process read the key.
     */
    decide: keys.decide,
    /** Ends an admitted request of a key with a concurrency limit. Called once for each admitted request. */
    release: keys.release,
    /** Charges one request without a valid key to the bucket of its client address (`address-group.ts`). */
    chargeAddress: (address: string, perMinute: number) =>
      buckets.address.charge(addressGroup(address), perMinute),
    /** Charges one CORS preflight to the `preflight` bucket of its client address. */
    chargePreflight: (address: string) =>
      buckets.preflight.charge(addressGroup(address), bounds.preflightsPerMinuteMax),
    /** Charges one request for the API reference to the `docs` bucket of its client address. */
    chargeDocs: (address: string) => buckets.docs.charge(addressGroup(address), bounds.docsReadsPerMinuteMax),
    /**
     * Reads the counts of a key without charging anything. While the store is unavailable, the result depends on `onFailure`: local counts
     * for `local`, and `unavailable` for `refuse`.
     */
    async readOwn(key: Key): Promise<OwnLimits | Unavailable> {
      await backing.health.started;
      const read = backing.health.partOf(key.id).available() ? await backing.store.read([key.id]) : undefined;
      if (read?.kind === 'read') {
        const status = statusOf(key, read.states[0], { windowsMs, nowMs: read.nowMs });
        return { kind: 'read', status, source };
      }
      const known = keys.readAlone(key);
      if (known.kind === 'unavailable') return known;
      const status = statusOf(key, known.state, { windowsMs, nowMs: known.nowMs });
      return { kind: 'read', status, source: 'local' };
    },
    /** Reads the counts of keys from the store without charging anything. The results have the order of the keys. */
    async read(of: readonly Key[]) {
      await backing.health.started;
      return readStatuses(of);
    },
    /** Returns the counts of keys as this process has last seen them, with its own decisions. Asks no other store than its memory. */
    async readOwnMemory(of: readonly KeyInMemory[]): Promise<KeysRead | StoreFailure> {
      if (redis === undefined) return readStatuses(of);
      const at = { windowsMs, nowMs: clock.nowMs() };
      const keys = of.map((key) => statusInMemory(key, ledger.stateOf(key.id), at));
      return { kind: 'read', keys };
    },
    /** Changes the counts of a key. Other processes apply the change within `bounds.refusalRememberedMs`. */
    async adjust(keyId: string, change: Change) {
      await backing.health.started;
      const reply = await backing.store.adjust(keyId, change);
      if (reply.kind === 'changed') keys.forget(keyId, reply.state);
      return reply;
    },
    countsOfKeys: {
      ...backing.counts,
      started: backing.health.started,
      isThere: (keyId) => backing.health.partOf(keyId).available(),
      forgetRefusalsOf: ledger.forgetRefusalsOf,
    } satisfies CountsOfKeys,
    /**
     * Marks a threshold as reported. Called when the queue of webhooks has stored the report. Until then, the store returns the threshold
     * with each decision on the key, so that a process that dies loses no report.
     */
    confirmTold: ({ keyId, ...mark }: ToldMark & { readonly keyId: string }) =>
      backing.store.confirmTold(keyId, mark),
    /** Makes the store decide the next request of each key. Called after a reload, because a reload may raise limits. */
    forgetRefusals: ledger.forgetRefusals,
    /** Receives a ban that a worker of this gateway detected. The supervisor logs and counts each ban once for all workers. */
    observeBan(event: BanEvent) {
      // This process detects the end of a ban with its own timer.
      if (event.kind === 'ban_ended' && event.ended === 'expired') return;
      const ban =
        event.kind === 'ban'
          ? {
              bannedUntilMs: event.untilMs,
              banLevel: event.level,
              handBan: event.byHand === true ? { untilMs: event.untilMs, reason: event.reason } : undefined,
            }
          : { bannedUntilMs: 0, banLevel: 0, handBan: undefined };
      bans.observe(event.keyId, ban, clock.nowMs());
    },
    state: backing.state,
    /** This process's estimate of the store's clock, epoch ms. */
    storeNowMs: clock.nowMs,
    /** Reads the store's clock, epoch ms. While the store is unavailable, returns an estimate. */
    readStoreNowMs: backing.readNowMs,
    /**
     * The counts of this process since its start: store calls, requests decided without the store, and bans by plan. `bannedKeys`
     * has the ids of the banned keys that this process has detected.
     */
    counts: () => ({ calls: keys.calls(), decidedLocally, bans: bans.begun(), bannedKeys: bans.keys() }),
    /** Sends the unsent local decisions to the store. Returns whether the store has replied to every call. */
    sendLocal: (): Promise<boolean> => keys.report(),
    /**
     * Sends the unsent local decisions and the reports of ended requests to the store, and disconnects. Waits at most
     * `bounds.storeCloseTimeoutMs`.
     */
    async close() {
      clearInterval(reportTimer);
      clearInterval(renewalTimer);
      bans.close();
      const deadline = Promise.withResolvers<void>();
      const deadlineTimer = setTimeout(deadline.resolve, bounds.storeCloseTimeoutMs);
      await Promise.race([Promise.all([keys.report(), keys.activeReported()]), deadline.promise]);
      clearTimeout(deadlineTimer);
      backing.close();
    },
  };

  function openMemory(): Backing {
    const store = createMemoryQuotaStore({ nowMs, bounds });
    return {
      store,
      counts: {
        redis: undefined,
        adjustInMemory: store.adjustBy,
        openBucket: (name, keyName) => createMinuteBucket({ name, keyName, nowMs, bounds }),
      },
      health: alwaysThere,
      state: () => ({ kind: 'memory' }),
      readNowMs: async () => nowMs(),
      close: () => {},
    };
  }

  function openShared(settings: RedisSettings): Backing {
    const { prefix, onFailure } = settings;
    const connection = openRedis(settings, bounds);
    const watch = watchStore({
      redis: connection,
      nameOf: (keyId) => redisKeys.quota.name(prefix, keyId),
      probeKey: redisKeys.probe.name(prefix),
      log: log.child({ onFailure }),
      faultPlaceOf: (reason) => faultPlaceOf(settings, reason),
      nowMs,
      bounds,
      describeOutage: () => ({ requestsDecidedAlone: decidedAlone, keysToWriteBack: ledger.unsentKeys() }),
      onAway: (reason, change) => onEvent?.({ kind: 'store_away', ...change, reason, onFailure }),
      onReturn(outage, change) {
        if (outage !== undefined) onEvent?.({ kind: 'store_back', ...change, ...outage });
        decidedAlone = 0;
        keys.reportActive();
        void keys.report();
      },
    });
    const missing = watchMissingCommands(connection, {
      retryMs: bounds.storeAclRetryMs,
      onChange(commands) {
        if (commands.length === 0) log.info('the Redis user may run every command that is needed');
        else
          log.error(
            { commands },
            `the Redis user may not run ${commands.join(', ')}; its ACL must allow them`,
          );
      },
    });
    let functionRefusal: string | undefined;
    const shared = { connection, available: (key: string) => watch.of(key).available() };
    return {
      store: createRedisQuotaStore({
        redis: connection,
        windowsMs,
        deadlineMs: bounds.storeDeadlineMs,
        patientDeadlineMs: bounds.storePatientDeadlineMs,
        keysPerCallMax: bounds.keysPerCallMax,
        functionRetryMs: bounds.storeAclRetryMs,
        onFunctionRefusal(reason) {
          functionRefusal = reason;
          if (reason === undefined) log.info('Redis runs decisions as a function again');
          else log.info({ reason }, 'Redis refuses functions; the gateway runs its decisions as a script');
        },
      }),
      counts: {
        redis: connection,
        adjustInMemory: () => {},
        openBucket: (name, keyName) =>
          createMinuteBucket({ name, keyName, redis: shared, nowMs: clock.nowMs, bounds }),
      },
      health: watch,
      state() {
        const missingCommands = missing.current();
        return {
          ...{ kind: 'redis', onFailure, ...watch.state() },
          ...(missingCommands.length > 0 && { missingCommands }),
          ...(functionRefusal !== undefined && { functionRefusal }),
        };
      },
      async readNowMs() {
        await watch.started;
        const sentMs = nowMs();
        const read = connection.clockOf(redisKeys.probe.name(prefix)).catch(() => undefined);
        const storeMs = await withinDeadline(read, bounds.storePatientDeadlineMs, () => undefined);
        if (storeMs !== undefined) clock.observe(sentMs, storeMs);
        return storeMs ?? clock.nowMs();
      },
      close() {
        watch.close();
        missing.close();
        connection.close();
      },
    };
  }
}

interface OwnLimits {
  readonly kind: 'read';
  readonly status: KeyStatus;
  readonly source: DecisionSource;
}

/** The store of the limiter, in memory or in Redis, and its health. */
interface Backing {
  readonly store: QuotaStore;
  readonly counts: Pick<CountsOfKeys, 'redis' | 'adjustInMemory' | 'openBucket'>;
  readonly health: StoreHealth;
  readonly state: () => StoreState;
  readonly readNowMs: () => Promise<number>;
  readonly close: () => void;
}

function openBuckets(open: CountsOfKeys['openBucket']) {
  return {
    address: open('address', redisKeys.address.name),
    preflight: open('preflight', redisKeys.preflight.name),
    docs: open('docs', redisKeys.docs.name),
  };
}

const wholeMemory: StorePart = { available: () => true, succeeded: () => {}, failed: () => {} };

const alwaysThere: StoreHealth = {
  started: Promise.resolve(),
  reach: () => 'all',
  partOf: () => wholeMemory,
  divide: (calls) => [{ part: wholeMemory, calls }],
};
