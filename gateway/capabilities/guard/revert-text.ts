import { type LimitsByField, toLimitFields, toLimits } from '../../keys/limits/limit-fields.ts';
import { limitChangeTexts } from '../../keys/limits/limit-texts.ts';
import type { Author } from '../../shared/model.ts';
import { figure, percent } from '../../shared/words/figures.js';
import type { Revert } from './guard.ts';
import type { GuardedEdit } from './guarded-edit.ts';

/** A guard has returned a plan to its earlier limits. */
export interface PlanReverted extends Revert {
  readonly kind: 'plan_reverted';
  readonly plan: string;
  /** The share of refused requests at which the guard reverts the plan. */
  readonly refusedShareMax: number;
  /** The limits of the edit, which applied until the revert. */
  readonly edit: LimitsByField;
  /** The limits from before the edit, which apply since the revert. */
  readonly inForce: LimitsByField;
}

/** An operator lets a reverted plan try its edit again. */
export interface PlanRetried extends Author {
  readonly kind: 'plan_retried';
  readonly plan: string;
  /** The limits from before the edit, which applied before the retry. */
  readonly before: LimitsByField;
  /** The limits of the edit, which apply after the retry. */
  readonly after: LimitsByField;
}

export function revertOf({ plan, limits, guard }: GuardedEdit, revert: Revert): PlanReverted {
  const { refusedShareMax } = guard;
  const [edit, inForce] = [toLimitFields(limits), toLimitFields(guard.before)];
  return { kind: 'plan_reverted', plan, ...revert, refusedShareMax, edit, inForce };
}

export function retryOf({ plan, limits, guard }: GuardedEdit, author: Author): PlanRetried {
  const [before, after] = [toLimitFields(guard.before), toLimitFields(limits)];
  return { kind: 'plan_retried', plan, ...author, before, after };
}

/** "The guard of plan free returned it to its earlier limits (40 → 60 a minute), because …" */
export function revertText(revert: Omit<PlanReverted, 'kind' | 'sinceMs' | 'refusedShareMax'>): string {
  return `The guard of plan ${revert.plan} returned it to its earlier limits (${revertedLimitsText(revert)}), because ${reasonText(revert)}.`;
}

/** "alice let plan free try its edit again (60 → 40 a minute)." */
export function retryText(retry: Omit<PlanRetried, 'kind'>): string {
  return `${retry.by} let plan ${retry.plan} try its edit again (${changeText(retry)}).`;
}

/** "the edit refused 132 of 4,100 requests (3.2 %) in ten minutes" */
export function reasonText({ requests, refused }: Pick<Revert, 'requests' | 'refused'>): string {
  return `the edit refused ${figure(refused)} of ${figure(requests)} requests (${percent(refused / requests)}) in ten minutes`;
}

/** The limits before and after a revert: "40 → 60 a minute". */
export function revertedLimitsText({ edit, inForce }: Pick<PlanReverted, 'edit' | 'inForce'>): string {
  return changeText({ before: edit, after: inForce });
}

function changeText({ before, after }: Pick<PlanRetried, 'before' | 'after'>): string {
  return limitChangeTexts(toLimits(before), toLimits(after)).join(', ');
}
