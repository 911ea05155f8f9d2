import type { Logger } from 'pino';
import { watchMissingCommands } from '../../redis/missing-commands.ts';
import { openRedis } from '../../redis/open-redis.ts';
import { redisKeys } from '../../redis/redis-keys.ts';
import { addressGroup } from '../../shared/address-group.ts';
import type {
  BanEvent,
  BanPolicy,
  BucketName,
  Decision,
  DecisionSource,
  Grant,
  Key,
  KeyStatus,
  RedisSettings,
  StoreEvent,
} from '../../shared/model.ts';
import { createWarnOfKey } from '../../shared/structures/warn-of-key.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createBanLog } from './ban-log.ts';
import { createKeyLedger } from './key-ledger.ts';
import { createKeyLimiter, type StoreHealth, type StorePart } from './key-limiter.ts';
import { createMinuteBucket, type MinuteBucket } from './minute-bucket.ts';
import { createStatusReader, statusOf } from './read-statuses.ts';
import { createMemoryQuotaStore } from './store/memory-quota-store.ts';
import type { QuotaChanged, QuotaStore, StoreFailure } from './store/quota-store.ts';
import { createRedisQuotaStore } from './store/redis-quota-store.ts';
import { createStoreClock } from './store/store-clock.ts';
import { type WatchedState, watchStore } from './store/store-watch.ts';

export type Limiter = ReturnType<typeof createLimiter>;

/** The kind and the state of the store, for `/readyz`. */
export type StoreState =
  | { readonly kind: 'memory' }
  | ({
      readonly kind: 'redis';
      readonly onFailure: 'local' | 'refuse';
      /** Needed commands that the ACL of the Redis user refuses. */
      readonly missingCommands?: readonly string[];
    } & WatchedState);

export type StoreCounts = ReturnType<Limiter['counts']>;

export interface LimiterDeps {
  /** Absent for the embedded memory store. */
  readonly redis?: RedisSettings | undefined;
  readonly log: Logger;
  /** This process's clock, epoch ms. With Redis, Redis's clock decides. */
  readonly nowMs: () => number;
  /** The plan of a key, for the log. */
  readonly planOf: (keyId: string) => string | undefined;
  /** Receives each logged event of bans and of Redis. */
  readonly onEvent?: ((event: BanEvent | StoreEvent) => void) | undefined;
  /** The log for bans, in place of `log`. */
  readonly banLog?: Logger | undefined;
  readonly bounds: Bounds;
}

/** The station that decides whether a request is within its limits. */
export function createLimiter({ redis, log, nowMs, planOf, onEvent, bounds, ...deps }: LimiterDeps) {
  const { windowsMs } = bounds;
  const ledger = createKeyLedger(bounds);
  const clock = createStoreClock(nowMs);
  const backing = redis === undefined ? openMemory() : openShared(redis);
  const { buckets } = backing;
  const source: DecisionSource = redis === undefined ? 'memory' : 'shared';
  const bans = createBanLog({ log: deps.banLog ?? log, nowMs: clock.nowMs, planOf, onEvent, bounds });
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
    bans,
    onUnusable(keyId) {
      const name = redisKeys.quota.name(redis?.prefix ?? '', keyId);
      const meanwhile = redis?.onFailure === 'refuse' ? 'the key gets 503' : 'each process counts on its own';
      warn(
        keyId,
        `what Redis has under ${name} is not the counts of this key: delete it; until then ${meanwhile}`,
      );
    },
    onDecidedAlone(requests) {
      decidedAlone += requests;
      decidedLocally += requests;
    },
  });
  const readStatuses = createStatusReader({ ...backing, reach: backing.health.reach, windowsMs });
  const reportTimer = setInterval(keys.report, bounds.reportIntervalMs).unref();

  return {
    /**
     * Decides one request of a valid key, with its cost in units. Requests of one key in one turn of the event loop are decided
     * together. Only a key with a `generation` can be stale.
     */
    decide: keys.decide,
    /** Charges one request without a valid key to its client address (`address-group.ts`). Valid keys are not affected. */
    chargeAddress: (address: string, perMinute: number) =>
      buckets.address.charge(addressGroup(address), perMinute),
    /** Charges one CORS preflight to its client address, in a separate bucket. */
    chargePreflight: (address: string) =>
      buckets.preflight.charge(addressGroup(address), bounds.preflightsPerMinuteMax),
    /** Charges one request for the API reference to its client address, in a separate bucket. */
    chargeDocs: (address: string) => buckets.docs.charge(addressGroup(address), bounds.docsReadsPerMinuteMax),
    /** Charges one request of a key for its own limits, in a separate bucket. */
    chargeLimits: (keyId: string) => buckets.limits.charge(keyId, bounds.limitsReadsPerMinuteMax),
    /**
     * Reads the counts of a key without charging anything. While the store is away, it reads the local counts under
     * `onFailure: local`, and returns `unavailable` under `refuse`.
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
    /** Reads the counts of keys from the store, in their order, without charging anything. */
    async read(of: readonly Key[]) {
      await backing.health.started;
      return readStatuses(of);
    },
    /** Ends a key's ban, on this process at once and on other processes within `bounds.refusalRememberedMs`. */
    liftBan: (keyId: string, bans: BanPolicy) => change(keyId, (store) => store.liftBan(keyId, bans)),
    /** Resets all counts and bans of a key, with the same delay. A grant stays. */
    reset: (keyId: string, bans: BanPolicy) => change(keyId, (store) => store.reset(keyId, bans)),
    /**
     * Gives a key other limits for a while, in place of an earlier grant, with the same delay on other processes. The grant ends by
     * itself. Counts stay.
     */
    grant: (keyId: string, grant: Grant) => change(keyId, (store) => store.setGrant(keyId, grant)),
    /** Removes a key's grant, with the same delay. */
    ungrant: (keyId: string) => change(keyId, (store) => store.setGrant(keyId, undefined)),
    /** Called after a reload, which may have raised limits. The store then decides the next request of each key. */
    forgetRefusals: ledger.forgetRefusals,
    /** Receives a ban that a worker of this gateway saw. The ban is logged and counted here, once for all workers. */
    observeBan(event: BanEvent) {
      // This process sees the end of a ban by itself.
      if (event.kind === 'ban_ended' && event.ended === 'expired') return;
      const ban =
        event.kind === 'ban'
          ? { bannedUntilMs: event.untilMs, banLevel: event.level }
          : { bannedUntilMs: 0, banLevel: 0 };
      bans.observe(event.keyId, ban, clock.nowMs());
    },
    state: backing.state,
    /** The store's clock as this process estimates it, epoch ms. */
    storeNowMs: clock.nowMs,
    /**
     * Counts since the start of this process: store calls, requests decided without the store, bans by plan, and the banned keys that
     * this process knows of.
     */
    counts: () => ({ calls: keys.calls(), decidedLocally, bans: bans.begun(), bannedKeys: bans.keys() }),
    /** Sends the unsent decisions, for at most `bounds.storeCloseTimeoutMs`, and disconnects. */
    async close() {
      clearInterval(reportTimer);
      bans.close();
      const deadline = Promise.withResolvers<void>();
      const deadlineTimer = setTimeout(deadline.resolve, bounds.storeCloseTimeoutMs);
      await Promise.race([keys.report(), deadline.promise]);
      clearTimeout(deadlineTimer);
      backing.close();
    },
  };

  /** Changes the counts of a key for an operator. */
  async function change(keyId: string, verb: (store: QuotaStore) => Promise<QuotaChanged | StoreFailure>) {
    await backing.health.started;
    const reply = await verb(backing.store);
    if (reply.kind === 'changed') keys.forget(keyId, reply.state);
    return reply;
  }

  function openMemory(): Backing {
    return {
      store: createMemoryQuotaStore({ nowMs, bounds }),
      health: alwaysThere,
      buckets: openBuckets({ nowMs, bounds }),
      state: () => ({ kind: 'memory' }),
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
      nowMs,
      bounds,
      describeOutage: () => ({ requestsDecidedAlone: decidedAlone, keysToWriteBack: ledger.unsentKeys() }),
      onAway: (reason, change) => onEvent?.({ kind: 'store_away', ...change, reason, onFailure }),
      onReturn(outage, change) {
        if (outage !== undefined) onEvent?.({ kind: 'store_back', ...change, ...outage });
        decidedAlone = 0;
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
    const shared = { connection, available: (key: string) => watch.of(key).available() };
    return {
      store: createRedisQuotaStore({
        redis: connection,
        windowsMs,
        deadlineMs: bounds.storeDeadlineMs,
        patientDeadlineMs: bounds.storePatientDeadlineMs,
        keysPerCallMax: bounds.keysPerCallMax,
      }),
      health: watch,
      buckets: openBuckets({ redis: shared, nowMs: clock.nowMs, bounds }),
      state() {
        const missingCommands = missing.current();
        return {
          ...{ kind: 'redis', onFailure, ...watch.state() },
          ...(missingCommands.length > 0 && { missingCommands }),
        };
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

type Unavailable = Extract<Decision, { kind: 'unavailable' }>;

/** The backing of the limiter: memory, or Redis with its watch. */
interface Backing {
  readonly store: QuotaStore;
  readonly health: StoreHealth;
  readonly buckets: Readonly<Record<BucketName, MinuteBucket>>;
  readonly state: () => StoreState;
  readonly close: () => void;
}

function openBuckets(deps: Omit<Parameters<typeof createMinuteBucket>[0], 'name'>): Backing['buckets'] {
  return {
    address: createMinuteBucket({ name: 'address', ...deps }),
    preflight: createMinuteBucket({ name: 'preflight', ...deps }),
    docs: createMinuteBucket({ name: 'docs', ...deps }),
    limits: createMinuteBucket({ name: 'limits', ...deps }),
  };
}

const wholeMemory: StorePart = { available: () => true, succeeded: () => {}, failed: () => {} };

const alwaysThere: StoreHealth = {
  started: Promise.resolve(),
  reach: () => 'all',
  partOf: () => wholeMemory,
  divide: (calls) => [{ part: wholeMemory, calls }],
};
