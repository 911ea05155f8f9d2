import type { UpstreamFigures } from '../process-state.ts';

/** Whether an upstream fails, as one gateway sees it. All times are epoch ms. */
export type Judgement =
  | { readonly kind: 'well'; readonly last?: EndedFailure | undefined }
  | {
      readonly kind: 'failing';
      /** Undefined if the failures began before this process started. */
      readonly sinceMs?: number | undefined;
      /** How long few requests must fail before the upstream is well. */
      readonly holdMs: number;
      /** Since when few requests of a minute have failed; undefined while many fail. */
      readonly calmSinceMs?: number | undefined;
      /** The largest share of failed requests in a minute, from 0 to 1. */
      readonly worstShare: number;
    };

interface EndedFailure {
  /** `quiet`: no request has arrived for a minute, so no request shows that the upstream is well. */
  readonly ended: 'recovered' | 'quiet';
  readonly endedMs: number;
  /** Undefined if the failures began before this process started. */
  readonly failingMs: number | undefined;
  readonly worstShare: number;
  readonly holdMs: number;
}

/** From which share and number of failed requests in a minute an upstream fails. */
export interface FailingBounds {
  /** From 0 to 1. */
  readonly shareMin: number;
  readonly failuresMin: number;
}

/**
 * Judges an upstream by its requests of the last minute. An upstream begins to fail at both bounds. It is well when its share of failures is
 * below half of the bound. The hold prevents a flood of events: after each relapse, the share must stay small for twice as long. The first
 * failure has no hold, the next failures have a hold of one minute, two minutes and so on, up to `holdMaxMs`. The hold returns to the start
 * after `holdMaxMs` without a relapse.
 */
export function judgeFailures(
  before: Judgement,
  { requests, failed }: UpstreamFigures,
  { shareMin, failuresMin }: FailingBounds,
  {
    nowMs,
    minuteMs,
    holdMaxMs,
  }: { readonly nowMs: number; readonly minuteMs: number; readonly holdMaxMs: number },
): Judgement {
  const share = requests === 0 ? 0 : failed / requests;
  const isMany = failed >= failuresMin && share >= shareMin;
  if (before.kind === 'well') {
    if (!isMany) return before;
    return { kind: 'failing', sinceMs: nowMs, holdMs: nextHold(before.last), worstShare: share };
  }
  const worstShare = isMany ? Math.max(before.worstShare, share) : before.worstShare;
  if (share >= shareMin / 2) return { ...before, worstShare, calmSinceMs: undefined };
  const { sinceMs, holdMs, calmSinceMs = nowMs } = before;
  if (nowMs - calmSinceMs < holdMs) return { ...before, worstShare, calmSinceMs };
  // The figures cover a minute, so the failures ended about a minute before the share became small.
  const failingMs = sinceMs === undefined ? undefined : Math.max(0, calmSinceMs - minuteMs - sinceMs);
  const ended = requests === 0 ? 'quiet' : 'recovered';
  return { kind: 'well', last: { ended, endedMs: nowMs, failingMs, worstShare, holdMs } };

  function nextHold(last: EndedFailure | undefined): number {
    if (last === undefined || nowMs - last.endedMs > holdMaxMs) return 0;
    return Math.min(Math.max(minuteMs, 2 * last.holdMs), holdMaxMs);
  }
}
