import { liftBan, resetCounts, setGrant } from '../../../quota/changes.ts';
import { decideKey, type QuotaCall } from '../../../quota/decide-key.ts';
import { emptyQuotaState, expiresMs, type QuotaState } from '../../../quota/hash.ts';
import { freeSlots, type Lease, renewLease } from '../../../quota/leases.ts';
import { confirmTold } from '../../../quota/thresholds.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { createMemoryCredits } from '../credit/credit-store.ts';
import type { QuotaChanged, QuotaDecided, QuotaStore } from './quota-store.ts';

/** Creates the memory store of a single process, which applies `decideKey` to at most `bounds.rememberedKeysMax` keys. */
export function createMemoryQuotaStore(deps: {
  nowMs: () => number;
  bounds: Pick<Bounds, 'rememberedKeysMax' | 'windowsMs'>;
}): QuotaStore & Pick<Parameters<typeof createMemoryCredits>[0], 'edit'> {
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
    liftBan: (keyId, bans) => Promise.resolve(change(keyId, liftBan, bans.maxMs)),
    reset: (keyId, bans) => Promise.resolve(change(keyId, resetCounts, bans.maxMs)),
    setGrant(keyId, grant) {
      return Promise.resolve(change(keyId, (before, atMs) => setGrant(before, atMs, grant), 0));
    },
    confirmTold(keyId, mark) {
      const entry = entries.get(keyId);
      const told = entry && confirmTold(entry.state, mark);
      if (told) entries.set(keyId, { ...entry, state: { ...entry.state, told } });
      return Promise.resolve({ kind: 'confirmed', isStored: told !== undefined });
    },
    edit(keyId, changeOf) {
      const entry = entries.get(keyId);
      const before = stateOf(keyId, nowMs());
      const state = changeOf(before);
      if (entry !== undefined && state !== before) entries.set(keyId, { ...entry, state });
    },
  };

  function decide(call: QuotaCall): QuotaDecided {
    const { keyId, concurrency, bans } = call;
    const atMs = nowMs();
    const before = entries.get(keyId)?.leases ?? [];
    const slots = concurrency && freeSlots(before, concurrency, atMs);
    const outcome = decideKey(stateOf(keyId, atMs), call, windowsMs, atMs, slots);
    const leases = concurrency ? renewLease(before, concurrency, outcome.admitted, atMs) : before;
    const endMs = Math.max(
      expiresMs(outcome.state, bans, windowsMs),
      ...leases.map(({ untilMs }) => untilMs),
    );
    keep(keyId, { state: outcome.state, leases, expiresMs: endMs }, atMs);
    return { kind: 'decided', outcome };
  }

  /** @param keptMs the minimum lifetime of the counts after the change */
  function change(keyId: string, verb: typeof liftBan, keptMs: number): QuotaChanged {
    const atMs = nowMs();
    const state = verb(stateOf(keyId, atMs), atMs);
    const before = entries.get(keyId);
    const endMs = Math.max(before?.expiresMs ?? 0, atMs + keptMs, state.grant?.untilMs ?? 0);
    keep(keyId, { state, leases: before?.leases ?? [], expiresMs: endMs }, atMs);
    return { kind: 'changed', nowMs: atMs, state };
  }

  function stateOf(keyId: string, atMs: number): Readonly<QuotaState> {
    const entry = entries.get(keyId);
    return entry !== undefined && entry.expiresMs > atMs ? entry.state : emptyQuotaState;
  }

  function keep(keyId: string, entry: Entry, atMs: number): void {
    if (!entries.has(keyId) && entries.size >= bounds.rememberedKeysMax) makeRoom(atMs);
    entries.set(keyId, entry);
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
