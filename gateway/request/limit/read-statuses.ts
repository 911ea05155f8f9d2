import { shownGrant } from '../../quota/grants.ts';
import { emptyQuotaState, type QuotaState } from '../../quota/hash.ts';
import { openWindows, usedOf } from '../../quota/windows.ts';
import type { WindowsMs } from '../../shared/calendar-windows.ts';
import { hasGroups, ofAllOperations } from '../../shared/limits.ts';
import type { Key, KeyStatus } from '../../shared/model.ts';
import { byHandIn } from './decision-at.ts';
import { rateLimitState, roomAtMs } from './rate-limit-state.ts';
import type { QuotaStore, StoreFailure } from './store/quota-store.ts';

export interface KeysRead {
  readonly kind: 'read';
  /** The status of each key; undefined for a key whose Redis server does not reply. */
  readonly keys: readonly (KeyStatus | undefined)[];
  /** The counts from which the store's status of each key was made. */
  readonly states?: readonly (Readonly<QuotaState> | undefined)[];
}

/** A key, with its counts as operators' pages have read them. */
export type KeyInMemory = Pick<Key, 'id' | 'limits'> & {
  readonly read?: Readonly<QuotaState> | undefined;
};

export type ReadStatuses = (keys: readonly Pick<Key, 'id' | 'limits'>[]) => Promise<KeysRead | StoreFailure>;

/** Creates a function that reads the status of keys from the store, in the order of the keys. It charges nothing. */
export function createStatusReader({
  store,
  reach,
  windowsMs,
}: {
  readonly store: Pick<QuotaStore, 'read'>;
  /** Whether all, some or no servers of the store are available. */
  readonly reach: () => 'all' | 'some' | 'none';
  readonly windowsMs: WindowsMs;
}): ReadStatuses {
  return async (of) => {
    const read = await store.read(of.map(({ id }) => id));
    if (read.kind === 'failed') {
      // The read also fails if only the servers of the requested keys are unavailable.
      return reach() === 'some' ? { kind: 'read', keys: of.map(() => undefined) } : read;
    }
    const { nowMs } = read;
    const statuses = of.map((key, index) => {
      const state = read.states[index];
      return state && statusOf(key, state, { windowsMs, nowMs });
    });
    return { kind: 'read', keys: statuses, states: read.states };
  };
}

/**
 * Computes the status of a key from what a process knows while the store is away: its own counts, and those that pages have read. The counts
 * with more requests are the later ones.
 */
export function statusInMemory(
  key: KeyInMemory,
  own: Readonly<QuotaState> | undefined,
  at: { readonly windowsMs: WindowsMs; readonly nowMs: number },
): KeyStatus {
  const { read = own } = key;
  const usedIn = (state: Readonly<QuotaState> | undefined) =>
    statusOf(key, state, at).used.reduce((sum, units) => sum + units, 0);
  const [later, earlier] = usedIn(read) > usedIn(own) ? [read, own] : [own ?? read, read];
  const grant = later?.grant ?? earlier?.grant;
  const status = statusOf(key, later && { ...later, grant }, at);
  // Another process may have counted requests of a key without counts here.
  const isKnown = usedIn(later) > 0 || status.rateLimit.ban !== undefined;
  return isKnown ? status : { ...status, isUnknown: true };
}

/** Computes the status of a key at the time `nowMs` from its last counts. */
export function statusOf(
  { limits }: Pick<Key, 'limits'>,
  counted: Readonly<QuotaState> | undefined,
  { windowsMs, nowMs }: { readonly windowsMs: WindowsMs; readonly nowMs: number },
): KeyStatus {
  const state = { ...(counted ?? emptyQuotaState) };
  openWindows(state, limits, windowsMs, nowMs);
  const { strikes, strikesFromMs, banLevel, bannedUntilMs: untilMs } = state;
  const terms = { limits, windowsMs, nowMs };
  const rateLimit = rateLimitState(state, terms);
  const used = limits.map((limit) => usedOf(state, limit));
  const grant = shownGrant(state.grant, nowMs);
  const isBanned = untilMs > nowMs;
  const ofAll = { ...terms, limits: ofAllOperations(limits) };
  const inAll = hasGroups(limits) ? rateLimitState(state, ofAll) : rateLimit;
  // The retry time is for a request that costs 1 unit, because a window never refuses a request that costs 0 units.
  const retryAtMs = roomAtMs(inAll, state, ofAll, { units: 1, fromMs: isBanned ? untilMs : 0 });
  return {
    rateLimit: isBanned ? { ...rateLimit, ban: { untilMs, retryAtMs, ...byHandIn(state) } } : rateLimit,
    retryAtMs,
    used,
    strikes,
    strikesFromMs,
    banLevel,
    ...(grant && { grant }),
  };
}
