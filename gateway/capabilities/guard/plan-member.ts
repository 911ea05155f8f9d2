import { type LimitsByField, toLimitFields, toLimits } from '../../keys/limits/limit-fields.ts';
import { limitsText } from '../../keys/limits/limit-texts.ts';
import { smallerLimits } from '../../shared/limits.ts';
import { dateText, isoOf } from '../../shared/schema/dates-and-durations.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import type { PlanMember } from '../interfaces/configuration.ts';
import { guardedEditOf } from './guarded-edit.ts';

export const guardMember: PlanMember = {
  compile: ({ guard }) => ({
    guard: guard && {
      before: toLimits(guard.before),
      refusedShareMax: guard.refusedAtMost / 100,
      untilMs: guard.until,
    },
  }),

  groupsIn: ({ guard }) => [{ path: ['guard', 'before'], groups: guard?.before.groups }],

  needsRedis({ guard }) {
    if (guard === undefined) return [];
    const lost = 'a restart would forget that the guard has reverted the plan';
    return [{ path: ['guard'], lost, instead: 'remove the guard' }];
  },

  /** Finds a guard that has ended, or that has nothing to watch because no limit of the plan is smaller than before the edit. */
  warning({ guard, limits, changes = [] }, nowMs) {
    if (guard === undefined) return undefined;
    if (guard.untilMs <= nowMs) {
      const about = 'is past, so the guard has ended; remove the guard if the new limits shall stay';
      return { path: ['guard', 'until'], about };
    }
    const all = [limits, ...changes.map((change) => change.limits)];
    if (all.some((one) => smallerLimits(guard.before, one).length > 0)) return undefined;
    const about =
      'has nothing to watch, because no limit of the plan is smaller than in `before`; remove the guard, or write the limits before the edit';
    return { path: ['guard'], about };
  },

  inForce(plan, { reverts }) {
    const edit = guardedEditOf(plan, plan.limits);
    const revert = edit && reverts?.get(edit.identity);
    if (edit === undefined || revert === undefined) return plan;
    return { ...plan, limits: edit.guard.before, reverted: { ...revert, edit: plan.limits } };
  },

  shown: ({ guard, reverted }) => ({
    guard: guard && {
      before: toLimitFields(guard.before),
      refusedAtMost: percentText(guard.refusedShareMax),
      untilAt: isoOf(guard.untilMs),
    },
    reverted: reverted && {
      sinceAt: isoOf(reverted.sinceMs),
      requests: reverted.requests,
      refused: reverted.refused,
      edit: toLimitFields(reverted.edit),
    },
  }),

  /** A guard that has reverted the plan did not change the configuration. */
  asConfigured({ reverted, ...rest }) {
    return isMapping(reverted) ? { rest, limits: reverted.edit as LimitsByField } : { rest };
  },

  /** For example "back to 60 a minute at 3 % refused (until 2026-12-07)". */
  texts: {
    guard(shown) {
      if (!isMapping(shown)) return 'nothing';
      const { before, refusedAtMost, untilAt } = shown;
      return `back to ${limitsText(toLimits(before as LimitsByField))} at ${refusedAtMost} refused (until ${dateText(String(untilAt))})`;
    },
  },
};

/** Returns a share of requests as the configuration states it: "3 %", "0.5 %". */
export function percentText(share: number): string {
  return `${Number((share * 100).toFixed(3))} %`;
}
