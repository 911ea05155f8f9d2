import { adjust, type Change } from '../../../quota/adjust.ts';
import { decideKey, type QuotaCall } from '../../../quota/decide-key.ts';
import { emptyQuotaState, expiresMs, type QuotaState } from '../../../quota/hash.ts';
import { freeSlots, type Lease, renewLease } from '../../../quota/leases.ts';
import { confirmTold } from '../../../quota/thresholds.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { QuotaChanged, QuotaDecided, QuotaStore } from './quota-store.ts';

/** Creates the memory store of a single process, which applies `decideKey` to at most `bounds.rememberedKeysMax` keys. */
export function createMemoryQuotaStore(deps: {
  nowMs: () => number;
  bounds: Pick<Bounds, 'rememberedKeysMax' | 'windowsMs'>;
}): QuotaStore & {
  adjustBy(keyId: string, changeOf: (counts: Readonly<QuotaState>) => Change): QuotaChanged;
} {
  const { nowMs, bounds } = deps;
  const { windowsMs } = bounds;
  const entries = new Map<string, Entry>();

  return {
    decide: (calls) => Promise.resolve(calls.map(decide)),
    read(keyIds) {
      const atMs = nowMs();
      return Promise.resolve({
        kind: 'read',
        nowMs: atMs,
        states: keyIds.map((keyId) => stateOf(keyId, atMs)),
      });
    },
    adjust: (keyId, change) => Promise.resolve(adjustBy(keyId, () => change)),
    adjustBy,
    confirmTold(keyId, mark) {
      const entry = entries.get(keyId);
      const told = entry && confirmTold(entry.state, mark);
      if (told) entries.set(keyId, { ...entry, state: { ...entry.state, told } });
      return Promise.resolve({ kind: 'confirmed', isStored: told !== undefined });
    },
  };

  function decide(call: QuotaCall): QuotaDecided {
    const { keyId, concurrency, bans } = call;
    const atMs = nowMs();
    const before = entryOf(keyId).leases;
    const slots = concurrency && freeSlots(before, concurrency, atMs);
    const outcome = decideKey(stateOf(keyId, atMs), call, windowsMs, atMs, slots);
    const leases = concurrency ? renewLease(before, concurrency, outcome.admitted, atMs) : before;
    const neededUntilMs = Math.max(
      expiresMs(outcome.state, bans, windowsMs),
      ...leases.map(({ untilMs }) => untilMs),
    );
    keep(keyId, { state: outcome.state, leases }, neededUntilMs, atMs);
    return { kind: 'decided', outcome };
  }

  function adjustBy(keyId: string, changeOf: (counts: Readonly<QuotaState>) => Change): QuotaChanged {
    const atMs = nowMs();
    const before = stateOf(keyId, atMs);
    const { state, neededUntilMs } = adjust(before, changeOf(before), atMs);
    if (state !== before) keep(keyId, { state }, neededUntilMs, atMs);
    return { kind: 'changed', nowMs: atMs, state };
  }

  function entryOf(keyId: string): Entry {
    return entries.get(keyId) ?? noEntry;
  }

  function stateOf(keyId: string, atMs: number): Readonly<QuotaState> {
    const { state, expiresMs } = entryOf(keyId);
    return expiresMs > atMs ? state : emptyQuotaState;
  }

  /** Never shortens the expiry. The counts live one second longer than needed, as in Redis (`prolong` in `hash.lua`). */
  function keep(keyId: string, changed: Partial<Entry>, neededUntilMs: number, atMs: number): void {
    const before = entryOf(keyId);
    if (before === noEntry && entries.size >= bounds.rememberedKeysMax) makeRoom(atMs);
    const expiresMs = Math.max(before.expiresMs, neededUntilMs + 1_000);
    entries.set(keyId, { ...before, ...changed, expiresMs });
  }

  /** Deletes expired keys. Deletes the oldest key when no key has expired. */
  function makeRoom(atMs: number): void {
    for (const [keyId, entry] of entries) if (entry.expiresMs <= atMs) entries.delete(keyId);
    const oldest = entries.keys().next();
    if (entries.size >= bounds.rememberedKeysMax && !oldest.done) entries.delete(oldest.value);
  }
}

interface Entry {
  readonly state: Readonly<QuotaState>;
  readonly leases: readonly Lease[];
  readonly expiresMs: number;
}

const noEntry: Entry = { state: emptyQuotaState, leases: [], expiresMs: 0 };
