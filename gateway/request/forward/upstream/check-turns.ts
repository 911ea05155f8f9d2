import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { soloCheckersMax } from './fleet/fleet-health.ts';

/** The situation of a target at the time of the question whether to check the target. */
interface Situation {
  /** On the clock of `performance.now()`. */
  readonly nowMs: number;
  /** The number of processes that check the target, including this process. */
  readonly checkers: number;
  /** Whether the target may be failing. A suspect target is checked more often. */
  readonly isSuspect: boolean;
}

/** The largest random part of a turn, as a share of the turn. */
const randomShare = 0.2;

/**
 * Decides when a process checks a target. A single process pauses for `healthPauseMs` after each check. Processes that share their checks
 * pause longer, in proportion to their number.
 */
export class CheckTurns {
  private readonly bounds: Bounds;
  private readonly random: () => number;
  private startedMs = Number.NEGATIVE_INFINITY;
  private nextTurnMs = Number.POSITIVE_INFINITY;
  /** Twice a random number, so that pauses have the right length on average. */
  private spread = 0;

  constructor(bounds: Bounds, random: () => number) {
    this.bounds = bounds;
    this.random = random;
  }

  /** The pause before the next question. */
  pauseMs(checkers: number): number {
    return checkers > soloCheckersMax ? this.bounds.healthPauseMs / 2 : this.bounds.healthPauseMs;
  }

  /** Whether to check the target now. If so, the caller starts a check. */
  isDue({ nowMs, checkers, isSuspect }: Situation): boolean {
    if (checkers > soloCheckersMax && !this.isSharedCheckDue(nowMs, checkers, isSuspect)) return false;
    this.startedMs = nowMs;
    this.spread = 2 * this.random();
    return true;
  }

  private isSharedCheckDue(nowMs: number, checkers: number, isSuspect: boolean): boolean {
    const { healthPauseMs, healthTurnMs, healthFleetPauseMs, healthOwnPauseMaxMs } = this.bounds;
    const turnMs = healthTurnMs * checkers;
    if (turnMs > healthPauseMs && !this.takeTurn(nowMs, turnMs)) return false;
    const sinceMs = nowMs - this.startedMs;
    const calmMs = Math.min(healthFleetPauseMs * checkers, healthOwnPauseMaxMs);
    // Pauses between 0 and twice `calmMs` spread the checks evenly over time, also after a fault that made all processes check at once.
    return sinceMs >= Math.max(healthPauseMs, isSuspect ? 0 : calmMs * this.spread);
  }

  /**
   * Whether a turn of this process has come. In a large fleet each process has turns at different times, and uses a turn only if a check is
   * due. The processes therefore do not all check a target at the moment at which it becomes suspect.
   */
  private takeTurn(nowMs: number, turnMs: number): boolean {
    // The first turn, and the next turn after the fleet has shrunk, are at a random time within the length of a turn.
    if (this.nextTurnMs > nowMs + turnMs * (1 + randomShare))
      this.nextTurnMs = nowMs + turnMs * this.random();
    if (nowMs < this.nextTurnMs) return false;
    this.nextTurnMs = nowMs + turnMs * (1 + randomShare * this.random());
    return true;
  }
}
