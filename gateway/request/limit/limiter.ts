import type { Logger } from 'pino';
import { watchMissingCommands } from '../../redis/missing-commands.ts';
import { openRedis } from '../../redis/open-redis.ts';
import { redisKeys } from '../../redis/redis-keys.ts';
import { addressGroup } from '../../shared/address-group.ts';
import type {
  BanEvent,
  BanPolicy,
  BucketDecision,
  Decision,
  DecisionSource,
  Grant,
  Key,
  KeyStatus,
  RedisSettings,
  StaleKey,
  StoreEvent,
} from '../../shared/model.ts';
import { createWarnOfKey } from '../../shared/structures/warn-of-key.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { createBanLog } from './ban-log.ts';
import { createKeyLedger } from './key-ledger.ts';
import { createKeyLimiter, type StoreHealth, type StorePart } from './key-limiter.ts';
import { createMinuteBucket, type MinuteBucket } from './minute-bucket.ts';
import { createStatusReader, type KeysRead, statusOf } from './read-statuses.ts';
import { createMemoryQuotaStore } from './store/memory-quota-store.ts';
import type { QuotaChanged, QuotaStore, StoreFailure } from './store/quota-store.ts';
import { createRedisQuotaStore } from './store/redis-quota-store.ts';
import { createStoreClock } from './store/store-clock.ts';
import { type WatchedState, watchStore } from './store/store-watch.ts';

/** The station that decides whether a request finds room. */
export interface Limiter {
  /**
   * One request of a valid key, which costs so many units. Requests of one key in the same turn of the event loop are decided
   * together. Only a key with a `generation` can be stale.
   */
  decide(key: Key, bans: BanPolicy, units: number): Promise<Decision | StaleKey>;
  /** One request without a valid key, charged to its client address (`address-group.ts`); valid keys are not limited by it. */
  chargeAddress(address: string, perMinute: number): Promise<BucketDecision>;
  /** One CORS preflight, charged to its client address in a bucket of its own. */
  chargePreflight(address: string): Promise<BucketDecision>;
  /** One request for the API reference, charged to its client address in a bucket of its own. */
  chargeDocs(address: string): Promise<BucketDecision>;
  /** One look of a key at its own limits, charged to the key in a bucket of its own. */
  chargeLimits(keyId: string): Promise<BucketDecision>;
  /**
   * Where a key is now; nothing is charged. While the store is away, what this process knows, which is what it decides on
   * then; or `unavailable` if it decides nothing then.
   */
  readOwn(key: Key): Promise<OwnLimits | Unavailable>;
  /** Where keys are now in the store, in their order; nothing is charged. */
  read(keys: readonly Key[]): Promise<KeysRead | StoreFailure>;
  /** Ends a key's ban on all processes: on this one at once, on others within `bounds.refusalRememberedMs`. */
  liftBan(keyId: string, bans: BanPolicy): Promise<QuotaChanged | StoreFailure>;
  /** Forgets all that was counted of a key, bans included; likewise. A grant stays. */
  reset(keyId: string, bans: BanPolicy): Promise<QuotaChanged | StoreFailure>;
  /**
   * Gives a key other limits for a while, in place of a grant that it has: in force on this process at once, on others with
   * the next decision of the store, at most `bounds.refusalRememberedMs` later. It ends by itself, and what was counted stays.
   */
  grant(keyId: string, grant: Grant): Promise<QuotaChanged | StoreFailure>;
  /** Takes a key's grant away; likewise. */
  ungrant(keyId: string): Promise<QuotaChanged | StoreFailure>;
  /** Called after a reload, which may have raised limits: the next request of each key is decided by the store. */
  forgetRefusals(): void;
  /** Hears what another process of this gateway saw of a ban: it is logged and counted here, once for all of them. */
  observeBan(event: BanEvent): void;
  state(): StoreState;
  /** The clock that decides, as this process knows it, epoch ms. */
  storeNowMs(): number;
  /** What this process asked of the store since it started, and what it decided without it. */
  counts(): StoreCounts;
  /** Sends what is left to send, for at most `bounds.storeCloseTimeoutMs`, and disconnects. */
  close(): Promise<void>;
}

/** Which store counts, and how it is; for `/readyz`. */
export type StoreState =
  | { readonly kind: 'memory' }
  | ({
      readonly kind: 'redis';
      readonly onFailure: 'local' | 'refuse';
      /** What the ACL of its user refuses, though it is needed. */
      readonly missingCommands?: readonly string[];
    } & WatchedState);

export interface OwnLimits {
  readonly kind: 'read';
  readonly status: KeyStatus;
  readonly source: DecisionSource;
}

type Unavailable = Extract<Decision, { kind: 'unavailable' }>;

export interface StoreCounts {
  /** Calls that the store decided, and calls without a reply. */
  readonly calls: { readonly decided: number; readonly failed: number };
  /** Requests that were decided without the store. */
  readonly decidedLocally: number;
  /** Bans that it has seen, by plan. */
  readonly bans: ReadonlyMap<string, number>;
  /** The keys under a ban that it knows of. */
  readonly bannedKeys: Iterable<string>;
}

export interface LimiterDeps {
  /** Absent: the embedded memory store. */
  readonly redis?: RedisSettings | undefined;
  readonly log: Logger;
  /** This process's clock, epoch ms. Redis's clock decides where there is one. */
  readonly nowMs: () => number;
  /** The plan that a key is on; for the log. */
  readonly planOf: (keyId: string) => string | undefined;
  /** Hears what is logged of bans and of Redis. */
  readonly onEvent?: ((event: BanEvent | StoreEvent) => void) | undefined;
  /** Where bans are logged, in place of `log`. */
  readonly banLog?: Logger | undefined;
  readonly bounds: Bounds;
}

export function createLimiter({ redis, log, nowMs, planOf, onEvent, bounds, ...deps }: LimiterDeps): Limiter {
  const { windowsMs } = bounds;
  const ledger = createKeyLedger(bounds);
  const clock = createStoreClock(nowMs);
  const backing = redis === undefined ? openMemory() : openShared(redis);
  const { addresses, preflights, docs, limits } = backing;
  const bans = createBanLog({ log: deps.banLog ?? log, nowMs: clock.nowMs, planOf, onEvent, bounds });
  const warn = createWarnOfKey(log, { idsMax: bounds.warnedKeysMax });
  let decidedAlone = 0;
  let decidedLocally = 0;

  const keys = createKeyLimiter({
    store: backing.store,
    source: redis === undefined ? 'memory' : 'shared',
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
    decide: keys.decide,
    chargeAddress: (address, perMinute) => addresses.charge(addressGroup(address), perMinute),
    chargePreflight: (address) => preflights.charge(addressGroup(address), bounds.preflightsPerMinuteMax),
    chargeDocs: (address) => docs.charge(addressGroup(address), bounds.docsReadsPerMinuteMax),
    chargeLimits: (keyId) => limits.charge(keyId, bounds.limitsReadsPerMinuteMax),
    async readOwn(key) {
      await backing.health.started;
      const read = backing.health.partOf(key.id).available() ? await backing.store.read([key.id]) : undefined;
      if (read?.kind === 'read') {
        const source = redis === undefined ? 'memory' : 'shared';
        return {
          kind: 'read',
          status: statusOf(key, read.states[0], { windowsMs, nowMs: read.nowMs }),
          source,
        };
      }
      const known = keys.readAlone(key);
      if (known.kind === 'unavailable') return known;
      return {
        kind: 'read',
        status: statusOf(key, known.state, { windowsMs, nowMs: known.nowMs }),
        source: 'local',
      };
    },
    async read(of) {
      await backing.health.started;
      return readStatuses(of);
    },
    async liftBan(keyId, bans) {
      await backing.health.started;
      return forget(keyId, await backing.store.liftBan(keyId, bans));
    },
    async reset(keyId, bans) {
      await backing.health.started;
      return forget(keyId, await backing.store.reset(keyId, bans));
    },
    grant: setGrant,
    ungrant: (keyId) => setGrant(keyId, undefined),
    forgetRefusals: ledger.forgetRefusals,
    observeBan(event) {
      // That a ban has run out is known here without being told.
      if (event.kind === 'ban_ended' && event.ended === 'expired') return;
      const ban =
        event.kind === 'ban'
          ? { bannedUntilMs: event.untilMs, banLevel: event.level }
          : { bannedUntilMs: 0, banLevel: 0 };
      bans.observe(event.keyId, ban, clock.nowMs());
    },
    state: backing.state,
    storeNowMs: clock.nowMs,
    counts: () => ({ calls: keys.calls(), decidedLocally, bans: bans.begun(), bannedKeys: bans.keys() }),
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

  async function setGrant(keyId: string, grant: Grant | undefined) {
    await backing.health.started;
    return forget(keyId, await backing.store.setGrant(keyId, grant));
  }

  function forget<Reply extends QuotaChanged | StoreFailure>(keyId: string, reply: Reply): Reply {
    if (reply.kind === 'changed') keys.forget(keyId, reply.state);
    return reply;
  }

  function openMemory(): Backing {
    return {
      store: createMemoryQuotaStore({ nowMs, bounds }),
      health: alwaysThere,
      ...openBuckets({ nowMs, bounds }),
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
      ...openBuckets({ redis: shared, nowMs: clock.nowMs, bounds }),
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

/** What stands behind the limiter: memory, or Redis and the watch over it. */
interface Backing extends Buckets {
  readonly store: QuotaStore;
  readonly health: StoreHealth;
  readonly state: () => StoreState;
  readonly close: () => void;
}

interface Buckets {
  readonly addresses: MinuteBucket;
  readonly preflights: MinuteBucket;
  readonly docs: MinuteBucket;
  readonly limits: MinuteBucket;
}

function openBuckets(deps: Omit<Parameters<typeof createMinuteBucket>[0], 'name'>): Buckets {
  return {
    addresses: createMinuteBucket({ name: 'address', ...deps }),
    preflights: createMinuteBucket({ name: 'preflight', ...deps }),
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
