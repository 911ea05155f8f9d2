import type { Logger } from 'pino';
import type { AddressDecision, BanPolicy, Decision, Key, Settings } from '../model.ts';
import { type Bounds, bounds } from '../timeouts-and-sizes.ts';
import { type AddressBucket, createAddressBucket } from './address-bucket.ts';
import { createKeyLedger } from './key-ledger.ts';
import { createKeyLimiter, type StoreHealth } from './key-limiter.ts';
import type { WindowLengths } from './store/decide-quota.ts';
import { createMemoryQuotaStore } from './store/memory-quota-store.ts';
import type { QuotaStore } from './store/quota-store.ts';
import { createRedisClient } from './store/redis-client.ts';
import { createRedisQuotaStore } from './store/redis-quota-store.ts';
import { createStoreClock } from './store/store-clock.ts';
import { watchStore } from './store/store-watch.ts';

/** The station that decides whether a request finds room. */
export interface Limiter {
  /** One request of a valid key. Requests of one key in the same turn of the event loop are decided by one call. */
  decide(key: Key, bans: BanPolicy): Promise<Decision>;
  /** One request without a valid key, charged to its address (IPv6 by /64). It never refuses a valid key. */
  chargeAddress(address: string, perMinute: number): Promise<AddressDecision>;
  /** One CORS preflight, charged to its address apart from that. */
  chargePreflight(address: string): Promise<AddressDecision>;
  /** A new snapshot is in force: ask the store again instead of refusing from memory. */
  forgetRefusals(): void;
  state(): StoreState;
  /** Sends what is left to send, for at most `bounds.storeCloseTimeoutMs`, and disconnects. */
  close(): Promise<void>;
}

/** Which store counts, and how it is; for `/readyz`. */
export type StoreState =
  | { readonly kind: 'memory' }
  | {
      readonly kind: 'redis';
      readonly available: boolean;
      readonly onFailure: 'local' | 'refuse';
      /** Since when it is there or away, epoch ms. */
      readonly sinceMs: number;
      readonly reason?: string;
    };

export interface LimiterDeps {
  /** Absent: the embedded memory store. */
  readonly redis?: Settings['redis'];
  readonly log: Logger;
  readonly bounds?: Bounds;
  /** This process's clock, epoch ms. Redis's clock decides where there is one. */
  readonly nowMs: () => number;
  readonly windowLengths?: WindowLengths;
}

export function createLimiter({ redis, log, nowMs, windowLengths = calendar }: LimiterDeps): Limiter {
  const ledger = createKeyLedger(windowLengths);
  const clock = createStoreClock(nowMs);
  const backing = redis === undefined ? openMemory() : openRedis(redis);
  const { addresses, preflights } = backing;
  let decidedAlone = 0;

  const keys = createKeyLimiter({
    store: backing.store,
    source: redis === undefined ? 'memory' : 'shared',
    health: backing.health,
    ledger,
    clock,
    nowMs,
    lengths: windowLengths,
    onFailure: redis?.onFailure ?? 'local',
    onDecidedAlone(requests) {
      decidedAlone += requests;
    },
  });
  const reportTimer = setInterval(keys.report, bounds.reportIntervalMs).unref();

  return {
    decide: keys.decide,
    chargeAddress: addresses.charge,
    chargePreflight: (address) => preflights.charge(address, bounds.preflightsPerMinuteMax),
    forgetRefusals: ledger.forgetRefusals,
    state: backing.state,
    async close() {
      clearInterval(reportTimer);
      const deadline = Promise.withResolvers<void>();
      const deadlineTimer = setTimeout(deadline.resolve, bounds.storeCloseTimeoutMs);
      await Promise.race([keys.report(), deadline.promise]);
      clearTimeout(deadlineTimer);
      backing.close();
    },
  };

  function openMemory(): Backing {
    return {
      store: createMemoryQuotaStore({ lengths: windowLengths, nowMs }),
      health: alwaysThere,
      addresses: createAddressBucket({ name: 'address', nowMs }),
      preflights: createAddressBucket({ name: 'preflight', nowMs }),
      state: () => ({ kind: 'memory' }),
      close: () => {},
    };
  }

  function openRedis({ url, prefix, onFailure }: NonNullable<Settings['redis']>): Backing {
    const client = createRedisClient(url);
    const watch = watchStore({
      client,
      probeKey: `${prefix}:probe`,
      log: log.child({ onFailure }),
      nowMs,
      describeOutage: () => ({ requestsDecidedAlone: decidedAlone, keysToWriteBack: ledger.unsentKeys() }),
      onReturn() {
        decidedAlone = 0;
        void keys.report();
      },
    });
    const shared = { client, prefix, available: watch.available };
    return {
      store: createRedisQuotaStore({
        client,
        prefix,
        lengths: windowLengths,
        deadlineMs: bounds.storeDeadlineMs,
      }),
      health: watch,
      addresses: createAddressBucket({ name: 'address', redis: shared, nowMs: clock.nowMs }),
      preflights: createAddressBucket({ name: 'preflight', redis: shared, nowMs: clock.nowMs }),
      state: () => ({ kind: 'redis', onFailure, ...watch.state() }),
      close() {
        watch.close();
        client.disconnect();
      },
    };
  }
}

const calendar: WindowLengths = { minuteMs: 60_000, dayMs: 86_400_000 };

/** What stands behind the limiter: memory, or Redis and the watch over it. */
interface Backing {
  readonly store: QuotaStore;
  readonly health: StoreHealth;
  readonly addresses: AddressBucket;
  readonly preflights: AddressBucket;
  readonly state: () => StoreState;
  readonly close: () => void;
}

const alwaysThere: StoreHealth = {
  available: () => true,
  started: Promise.resolve(),
  succeeded: () => {},
  failed: () => {},
};
