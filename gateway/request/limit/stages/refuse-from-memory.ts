import type { QuotaOutcome } from '../../../quota/decide-key.ts';
import type { Run } from '../../../quota/runs.ts';
import type { BanPolicy, Decision, DecisionSource, Key } from '../../../shared/model.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type DecidedRun, decidedRuns, decisionAt } from '../decision-at.ts';
import type { KeyLedger } from '../key-ledger.ts';
import type { StoreClock } from '../store/store-clock.ts';
import { isSameCharge } from './open-call.ts';

/** Refuses a request without a call to the store, if the store has just refused a request of the same key. */
export function createRefuser({
  source,
  ledger,
  clock,
  freeSlots,
  bounds,
}: {
  readonly source: DecisionSource;
  readonly ledger: Pick<KeyLedger, 'refuse' | 'lastSeen' | 'lastSeenTrial'>;
  readonly clock: StoreClock;
  /** The number of requests of a key that this process may begin now. */
  readonly freeSlots: (key: Key) => number;
  readonly bounds: Pick<Bounds, 'banRepeatedMs' | 'windowsMs'>;
}) {
  const { windowsMs } = bounds;
  /** Recent decisions on banned keys, by key id. When `bounds.banRepeatedMs` has passed since `fromMs`, a new map replaces this map. */
  let bans = new Map<string, RepeatedBan>();
  let fromMs = 0;

  return {
    /** Returns undefined if the store must decide. @param run one request */
    refuse(key: Key, policy: BanPolicy, run: Run): Decision | undefined {
      const nowMs = clock.nowMs();
      const repeated = repeatBan(key, run, nowMs);
      if (repeated !== undefined) return repeated;
      const crowded = freeSlots(key) <= 0 ? refuseCrowded(key, nowMs) : undefined;
      if (crowded !== undefined) return onlyDecision(key, run, crowded);
      const { id: keyId, limits, trial } = key;
      const outcome = ledger.refuse({ keyId, limits, trial, bans: policy }, run, nowMs);
      if (outcome === undefined) return undefined;
      const decision = onlyDecision(key, run, outcome);
      // A refusal by a window of the trial counts towards the next ban of the trial, so it is not repeated.
      if (decision.kind === 'banned' && (decision.trial ?? 'banned') === 'banned') {
        const { state, trial: ofTrial } = outcome;
        const untilMs = Math.min(
          state.bannedUntilMs,
          ofTrial?.state.bannedUntilMs ?? Number.POSITIVE_INFINITY,
        );
        bans.set(keyId, { decision, run, trial, untilMs });
      }
      return decision;
    },
    /** Repeats no more decisions on a key. */
    forget(keyId: string): void {
      bans.delete(keyId);
    },
  };

  /**
   * Repeats the previous decision on a banned key for a short time. The decision can be repeated because requests during a ban are not
   * counted. If the plan has a trial, the trial has banned the key too.
   */
  function repeatBan({ id, trial }: Key, run: Run, nowMs: number): Decision | undefined {
    if (Math.abs(nowMs - fromMs) >= bounds.banRepeatedMs) {
      bans = new Map();
      fromMs = nowMs;
    }
    const last = bans.get(id);
    const isSame = last !== undefined && isSameCharge(last.run, run) && last.trial === trial;
    return isSame && nowMs < last.untilMs ? last.decision : undefined;
  }

  /** Refuses a request of a key that has reached its concurrency limit, unless the key is banned. */
  function refuseCrowded({ id: keyId, limits, trial }: Key, nowMs: number): QuotaOutcome | undefined {
    const state = ledger.lastSeen({ keyId, limits }, nowMs);
    if (state.bannedUntilMs > nowMs) return undefined;
    const outcome = { nowMs, admitted: 0, refused: 0, banned: 0, crowded: 1, admittedOf: [0], state };
    if (trial === undefined) return outcome;
    const trialState = ledger.lastSeenTrial({ keyId, limits, trial }, nowMs);
    const isBanned = trialState.bannedUntilMs > nowMs;
    const ofTrial = { ...outcome, banned: isBanned ? 1 : 0, crowded: isBanned ? 0 : 1, state: trialState };
    return { ...outcome, trial: ofTrial };
  }

  function onlyDecision({ limits, trial }: Key, run: Run, outcome: QuotaOutcome): Decision {
    const [decided] = decidedRuns({ limits, trial, runs: [run] }, outcome, { source, windowsMs });
    return decisionAt(0, decided as DecidedRun);
  }
}

interface RepeatedBan {
  readonly decision: Decision;
  readonly run: Run;
  readonly trial: Key['trial'];
  readonly untilMs: number;
}
