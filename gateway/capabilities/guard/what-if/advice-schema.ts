import * as z from 'zod';
import { quantity } from '../../../keys/response-parts.ts';

export const guardShareShape = {
  guardShare: quantity
    .optional()
    .describe(
      'The largest share of refused requests, 0 to 1, in ten minutes with at least 100 requests. Each key counts for its part, as for a guard. A guard whose `refusedAtMost` is larger would not have reverted the plan. Present if the limits of the plan are edited, together with the limits of at most 99 other plans.',
    ),
};

export const guardAdviceShape = {
  guards: z
    .record(z.string(), z.string())
    .describe(
      'The proposed `guard` of each plan that gets a smaller limit, as a line of the configuration. Its `refusedAtMost` is larger than `guardShare`.',
    ),
};
