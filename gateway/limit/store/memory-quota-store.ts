import { bounds } from '../../timeouts-and-sizes.ts';
import {
  decideQuota,
  emptyQuotaState,
  expiresMs,
  type QuotaCall,
  type QuotaState,
  type WindowLengths,
} from './decide-quota.ts';
import type { QuotaDecided, QuotaStore } from './quota-store.ts';

/** The embedded store of a single process: a Map and `decideQuota`. It holds at most `bounds.rememberedKeysMax` keys. */
export function createMemoryQuotaStore(deps: { lengths: WindowLengths; nowMs: () => number }): QuotaStore {
  const { lengths, nowMs } = deps;
  const entries = new Map<string, Entry>();

  return {
    decide: (calls) => Promise.resolve(calls.map(decide)),
  };

  function decide(call: QuotaCall): QuotaDecided {
    const atMs = nowMs();
    const entry = entries.get(call.keyId);
    const before = entry !== undefined && entry.expiresMs > atMs ? entry.state : emptyQuotaState;
    const outcome = decideQuota(before, call, lengths, atMs);
    if (entry === undefined && entries.size >= bounds.rememberedKeysMax) makeRoom(atMs);
    entries.set(call.keyId, {
      state: outcome.state,
      expiresMs: expiresMs(outcome.state, call.bans, lengths),
    });
    return { kind: 'decided', outcome };
  }

  /** Drops what has expired, and the oldest key when nothing has. */
  function makeRoom(atMs: number): void {
    for (const [keyId, entry] of entries) if (entry.expiresMs <= atMs) entries.delete(keyId);
    const oldest = entries.keys().next();
    if (entries.size >= bounds.rememberedKeysMax && !oldest.done) entries.delete(oldest.value);
  }
}

interface Entry {
  readonly state: Readonly<QuotaState>;
  readonly expiresMs: number;
}
