import type { BanPolicy } from '../../model.ts';
import type { Bounds } from '../../timeouts-and-sizes.ts';
import type { WindowsMs } from '../calendar-windows.ts';
import {
  decideQuota,
  emptyQuotaState,
  expiresMs,
  liftBan,
  type QuotaCall,
  type QuotaState,
  resetQuota,
} from './decide-quota.ts';
import type { QuotaChanged, QuotaDecided, QuotaStore } from './quota-store.ts';

/** The embedded store of a single process: a Map and `decideQuota`. It holds at most `bounds.rememberedKeysMax` keys. */
export function createMemoryQuotaStore(deps: {
  windowsMs: WindowsMs;
  nowMs: () => number;
  bounds: Pick<Bounds, 'rememberedKeysMax'>;
}): QuotaStore {
  const { windowsMs, nowMs, bounds } = deps;
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
    liftBan: (keyId, bans) => Promise.resolve(change(keyId, bans, liftBan)),
    reset: (keyId, bans) => Promise.resolve(change(keyId, bans, resetQuota)),
  };

  function decide(call: QuotaCall): QuotaDecided {
    const atMs = nowMs();
    const outcome = decideQuota(stateOf(call.keyId, atMs), call, windowsMs, atMs);
    keep(call.keyId, outcome.state, call.bans, atMs);
    return { kind: 'decided', outcome };
  }

  function change(keyId: string, bans: BanPolicy, verb: typeof liftBan): QuotaChanged {
    const atMs = nowMs();
    const state = verb(stateOf(keyId, atMs), atMs);
    keep(keyId, state, bans, atMs);
    return { kind: 'changed', nowMs: atMs, state };
  }

  function stateOf(keyId: string, atMs: number): Readonly<QuotaState> {
    const entry = entries.get(keyId);
    return entry !== undefined && entry.expiresMs > atMs ? entry.state : emptyQuotaState;
  }

  function keep(keyId: string, state: Readonly<QuotaState>, bans: BanPolicy, atMs: number): void {
    if (!entries.has(keyId) && entries.size >= bounds.rememberedKeysMax) makeRoom(atMs);
    entries.set(keyId, { state, expiresMs: expiresMs(state, bans, windowsMs) });
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
