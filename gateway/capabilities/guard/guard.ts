import type { Limits } from '../../shared/model.ts';

declare module '../../shared/model.ts' {
  interface PlanAdvice {
    /** The share of refused requests that a guard must at least allow (`BusiestRefusals`); undefined if the plan is not edited. */
    readonly guardShare?: number | undefined;
  }
  interface Proposals {
    /** The proposed `guard` of a plan. */
    readonly guards: Readonly<Record<string, string>>;
  }
  interface PlanFigures {
    /** The requests of the last ten minutes that the watched windows decided, and the requests of these that they refused. */
    readonly watched?: { readonly requests: number; readonly refused: number };
  }
  interface PlanMembers {
    /** The guard of an edit that made limits of the plan smaller; undefined without a guard. */
    readonly guard?: Guard | undefined;
    /** Present if the guard has returned the plan to `guard.before`. `limits` are then the limits before the edit. */
    readonly reverted?: Reverted | undefined;
  }
  interface PlanStates {
    readonly reverts?: Reverts;
  }
}

/** The guard of a plan. The guard returns the plan to the limits `before` if the limits of the plan refuse too many requests. */
export interface Guard {
  /** All limits of the plan before the guarded edit. */
  readonly before: Limits;
  /** The share of refused requests at which the plan returns to `before`: more than 0, at most 1. */
  readonly refusedShareMax: number;
  /** The time at which the guard ends, epoch ms on the store's clock. */
  readonly untilMs: number;
}

/** When and why a guard has returned a plan to its earlier limits. */
export interface Revert {
  /** Epoch ms on the store's clock. */
  readonly sinceMs: number;
  /** The requests during the ten minutes before `sinceMs` that the guard counted (`decide-guard.ts`). */
  readonly requests: number;
  /** The requests of these that a smaller window refused. */
  readonly refused: number;
}

/** The known reverts, by the identity of the guarded edit (`guardedEditOf`). */
export type Reverts = ReadonlyMap<string, Revert>;

/** The revert of a plan in force. */
interface Reverted extends Revert {
  /** The limits of the edit, which do not apply since `sinceMs`. */
  readonly edit: Limits;
}
