import * as z from 'zod';
import { limitsWithGroups } from '../../keys/limits/limits-schema.ts';
import { count, instant, limitsByField } from '../../keys/response-parts.ts';
import { date, fields, percent } from '../../shared/schema/schema-parts.ts';

declare module '../interfaces/configuration.ts' {
  interface StatedPlanMembers extends z.output<z.ZodObject<typeof guardShape>> {}
  interface PlanShownMembers extends z.output<z.ZodObject<typeof guardShownShape>> {}
}

export const guardShape = {
  guard: fields('a mapping with before, refusedAtMost and until', {
    before: limitsWithGroups.describe('All windows and groups of the plan before the edit.'),
    refusedAtMost: percent.describe(
      'The share of refused requests from which on the plan may return to `before`. Of the last ten minutes, the guard counts the requests that were decided by a limit that is stricter than in `before`.',
    ),
    until: date.describe(
      'The time until which the guard watches the plan, on the clock of Redis. A date means 00:00 UTC.',
    ),
  })
    .optional()
    .describe(
      'A safety net for an edit that makes limits stricter. If the new limits refuse too many requests, all gateways return to the limits `before`. Needs `redis`.',
    ),
};

export const guardShownShape = {
  guard: z
    .object({
      before: limitsByField.describe('All limits of the plan before the edit.'),
      refusedAtMost: z
        .string()
        .describe(
          'The share of refused requests, such as `3 %`, from which on the plan may return to `before`.',
        ),
      untilAt: instant,
    })
    .optional(),
  reverted: z
    .object({
      sinceAt: instant,
      requests: count.describe(
        'The requests that the guard counted during the ten minutes before `sinceAt`.',
      ),
      refused: count.describe('The refusals among these requests.'),
      edit: limitsByField.describe('The limits of the edit.'),
    })
    .optional()
    .describe('Present while the guard has returned the plan to `guard.before`, which is then in `windows`.'),
};

export const guardFiguresShape = {
  watched: z
    .object({ requests: count, refused: count })
    .optional()
    .describe(
      'The requests that the watched windows decided in the last ten minutes, and those that they refused, at the last reply of Redis. A guard counts each key only up to its part of these figures. Absent without a guard, and while no limit is new or smaller than in `before`.',
    ),
};
