import type { Grant } from '../shared/model.ts';
import { noBan } from './bans.ts';
import { unendedGrant } from './grants.ts';
import { emptyQuotaState, type QuotaState } from './hash.ts';

/**
 * Lifts the ban and resets the ban level, also in the trial. Requests are admitted again if the windows have room. The new generation makes
 * the store ignore older strikes and bans, even if processes send them later.
 */
export function liftBan(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const liftedMs = Math.max(nowMs, before.liftedMs + 1);
  const { trial } = before;
  return { ...before, ...noBan, ...(trial && { trial: { ...trial, ...noBan } }), liftedMs };
}

/**
 * Resets all counts, bans and reported thresholds, but not a grant. The new generation makes the store ignore older decisions, even if
 * processes send them later.
 */
export function resetCounts(before: Readonly<QuotaState>, nowMs: number): QuotaState {
  const { liftedMs, grant } = liftBan(before, nowMs);
  return { ...emptyQuotaState, liftedMs, resetMs: liftedMs, grant };
}

/** Replaces or removes the grant of the key. Does not change the counts. */
export function setGrant(before: Readonly<QuotaState>, nowMs: number, grant: Grant | undefined): QuotaState {
  return { ...before, grant: unendedGrant(grant, nowMs) };
}
