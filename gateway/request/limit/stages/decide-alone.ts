import type { QuotaOutcome } from '../../../quota/decide-key.ts';
import type { QuotaState } from '../../../quota/hash.ts';
import type { Key, Limits } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { BanLog } from '../ban-log.ts';
import type { KeyLedger } from '../key-ledger.ts';
import { rateLimitState } from '../rate-limit-state.ts';
import type { StoreClock } from '../store/store-clock.ts';
import type { ThresholdReports } from '../threshold-reports.ts';
import type { OpenCall, Unavailable } from './open-call.ts';

export interface LocalDeciderDeps {
  readonly ledger: Pick<KeyLedger, 'decideAlone' | 'lastSeen'>;
  readonly clock: StoreClock;
  readonly onFailure: 'local' | 'refuse';
  readonly onDecidedAlone: (requests: number) => void;
  readonly bans: Pick<BanLog, 'observe'>;
  readonly thresholds: Pick<ThresholdReports, 'observe'>;
  readonly bounds: Pick<Bounds, 'storeProbeIntervalMs' | 'windowsMs'>;
}

/** Decides calls with the last known counts while the store is unavailable, or refuses them if `onFailure` is `refuse`. */
export function createLocalDecider({ ledger, clock, onFailure, bounds, ...deps }: LocalDeciderDeps) {
  return {
    /**
     * @param mayBeCharged whether the store may have charged the requests
     * @param slots the number of requests that may begin now under the concurrency limit
     */
    decide(call: OpenCall, mayBeCharged: boolean, slots: number): LocallyDecided | Unavailable {
      const nowMs = clock.nowMs();
      if (onFailure === 'refuse') return unavailable(call, nowMs);
      const outcome = ledger.decideAlone(call, nowMs, mayBeCharged, slots);
      deps.bans.observe(call.keyId, outcome.state, nowMs);
      deps.thresholds.observe(call.keyId, outcome, 'local');
      deps.onDecidedAlone(call.size);
      return { kind: 'decided', outcome };
    },
    read({ id: keyId, limits }: Key): LocallyRead | Unavailable {
      const nowMs = clock.nowMs();
      if (onFailure === 'refuse') return unavailable({ keyId, limits }, nowMs);
      return { kind: 'known', state: ledger.lastSeen({ keyId, limits }, nowMs), nowMs };
    },
  };

  function unavailable(key: { readonly keyId: string; readonly limits: Limits }, nowMs: number): Unavailable {
    const { limits } = key;
    const { windowsMs, storeProbeIntervalMs } = bounds;
    const rateLimit = rateLimitState(ledger.lastSeen(key, nowMs), { limits, windowsMs, nowMs });
    const retryAtMs = nowMs + Math.ceil(storeProbeIntervalMs / 1000) * 1000;
    return { kind: 'unavailable', units: 0, rateLimit, source: 'local', retryAtMs };
  }
}

interface LocallyDecided {
  readonly kind: 'decided';
  readonly outcome: QuotaOutcome;
}

interface LocallyRead {
  readonly kind: 'known';
  readonly state: Readonly<QuotaState>;
  /** The store's clock, epoch ms. */
  readonly nowMs: number;
}
