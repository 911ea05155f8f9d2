import { type Adjustment, adjust } from '../../../quota/adjust.ts';
import { decideKey, type QuotaCall } from '../../../quota/decide-key.ts';
import { emptyQuotaState, expiresMs, prolong, type QuotaState } from '../../../quota/hash.ts';
import { freeSlots, type Lease, renewLease } from '../../../quota/leases.ts';
import { confirmTold } from '../../../quota/thresholds.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { createMemoryCredits } from '../credit/credit-store.ts';
import type { QuotaChanged, QuotaDecided, QuotaStore } from './quota-store.ts';

/** Creates the memory store of a single process, which applies `decideKey` to at most `bounds.rememberedKeysMax` keys. */
export function createMemoryQuotaStore(deps: {
  nowMs: () => number;
  bounds: Pick<Bounds, 'rememberedKeysMax' | 'windowsMs'>;
}): QuotaStore & Pick<Parameters<typeof createMemoryCredits>[0], 'adjustBy'> {
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
    const before = entries.get(keyId)?.leases ?? [];
    const slots = concurrency && freeSlots(before, concurrency, atMs);
    const outcome = decideKey(stateOf(keyId, atMs), call, windowsMs, atMs, slots);
    const leases = concurrency ? renewLease(before, concurrency, outcome.admitted, atMs) : before;
    const untilMs = Math.max(expiresMs(outcome.state, bans, windowsMs), ...leases.map((one) => one.untilMs));
    keep(keyId, { state: outcome.state, leases }, untilMs, atMs);
    return { kind: 'decided', outcome };
  }

  function adjustBy(keyId: string, changeOf: (before: Readonly<QuotaState>) => Adjustment): QuotaChanged {
    const atMs = nowMs();
    const before = stateOf(keyId, atMs);
    const { state, untilMs } = adjust(before, changeOf(before), atMs);
    if (state !== before) keep(keyId, { state, leases: entries.get(keyId)?.leases ?? [] }, untilMs, atMs);
    return { kind: 'changed', nowMs: atMs, state };
  }

  function stateOf(keyId: string, atMs: number): Readonly<QuotaState> {
    const entry = entries.get(keyId);
    return entry !== undefined && entry.expiresMs > atMs ? entry.state : emptyQuotaState;
  }

  function keep(keyId: string, counts: Omit<Entry, 'expiresMs'>, untilMs: number, atMs: number): void {
    const before = entries.get(keyId);
    if (before === undefined && entries.size >= bounds.rememberedKeysMax) makeRoom(atMs);
    entries.set(keyId, { ...counts, expiresMs: prolong(before?.expiresMs ?? 0, untilMs) });
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
