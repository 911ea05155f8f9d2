import * as z from 'zod';
import { type LimitsByField, toLimitFields, toLimits } from '../../keys/limits/limit-fields.ts';
import { limitsText } from '../../keys/limits/limit-texts.ts';
import { limitsWithGroups } from '../../keys/limits/limits-schema.ts';
import { count, instant, limitsByField } from '../../keys/response-parts.ts';
import { smallerLimits } from '../../shared/limits.ts';
import { dateText, isoOf } from '../../shared/schema/dates-and-durations.ts';
import { date, expects, fields } from '../../shared/schema/schema-parts.ts';
import { isMapping } from '../../shared/structures/plain-data.ts';
import type { PlanMember } from '../interfaces/configuration.ts';
import { guardedEditOf } from './guarded-edit.ts';

declare module '../interfaces/configuration.ts' {
  interface StatedPlanMembers extends z.output<z.ZodObject<typeof guardShape>> {}
  interface PlanShownMembers extends z.output<z.ZodObject<typeof guardShownShape>> {}
}

/** More than 0 % and at most 100 %. */
const percentPattern = /^(?!0+(\.0+)? ?%)(100(\.0+)?|\d{1,2}(\.\d{1,3})?) ?%$/;

const aPercentage = expects('a percentage above 0 % and up to 100 %, such as 3 % or 0.5 %');

/** A share of requests in percent. The output is the number of percent. */
const percent = z.string(aPercentage).regex(percentPattern, aPercentage).transform(Number.parseFloat);

export const guardShape = {
  guard: fields('a mapping with before, refusedAtMost and until', {
    before: limitsWithGroups.describe(
      'All limits of the plan before the edit. The guard returns the plan to these limits.',
    ),
    refusedAtMost: percent.describe(
      'The share of requests, such as `3 %`, at which the plan returns to `before`. The guard counts the requests that windows which are smaller than in `before` decided during the last ten minutes.',
    ),
    until: date.describe(
      'The time at which the guard ends and the new limits stay, on the clock of Redis. A date means 00:00 UTC.',
    ),
  })
    .optional()
    .describe(
      'A safety net for an edit that makes limits smaller. If the new limits refuse too many requests, all gateways return to the limits `before`.',
    ),
};

export const guardShownShape = {
  guard: z
    .object({
      before: limitsByField.describe('All limits of the plan before the edit.'),
      refusedAtMost: z
        .string()
        .describe('The share of refused requests at which the plan returns to `before`, such as `3 %`.'),
      untilAt: instant.describe('The end of the guard.'),
    })
    .optional()
    .describe('The guard of an edit that made limits smaller.'),
  reverted: z
    .object({
      sinceAt: instant,
      requests: count.describe('The requests of the plan during the ten minutes before `sinceAt`.'),
      refused: count.describe(
        'The requests of these that a window refused because the edit made it smaller.',
      ),
      edit: limitsByField.describe('The limits of the edit, which do not apply since `sinceAt`.'),
    })
    .optional()
    .describe(
      'Present if the guard has returned the plan to `guard.before`. `windows` then has the limits before the edit.',
    ),
};

export const guardFiguresShape = {
  watched: z
    .object({ requests: count, refused: count })
    .optional()
    .describe(
      'The requests of the last ten minutes that the watched windows decided, and the requests of these that they refused. A guard counts each key only up to its part of these figures. Absent without a guard, and while no limit is smaller than in `before`.',
    ),
};

export const guardMember: PlanMember = {
  compile: ({ guard }) => ({
    guard: guard && {
      before: toLimits(guard.before),
      refusedShareMax: guard.refusedAtMost / 100,
      untilMs: guard.until,
    },
  }),

  groupsIn: ({ guard }) => [{ path: ['guard', 'before'], groups: guard?.before.groups }],

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
