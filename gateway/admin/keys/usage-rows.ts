import * as z from 'zod';
import { usageSteps } from '../../usage/read/usage-rows.ts';
import { chargedUnits, count, instant, list, positive, words } from '../api/response-parts.ts';
import { refusedShown } from './why.ts';

/** The requests of a key in one minute, hour or day, by outcome. A period without a request has no row. */
export const usageRow = z.object({
  at: instant.describe('The beginning of the row.'),
  offered: count.describe(
    'All requests of the key except `unauthorized` requests: admitted, refused, banned and undecided requests.',
  ),
  admitted: count,
  refused: refusedShown,
  banned: count,
  undecided: positive
    .optional()
    .describe('Requests that got 503 because Redis was away and `redis.onFailure` is `refuse`.'),
  units: chargedUnits,
  unauthorized: positive
    .optional()
    .describe(
      'Requests with an invalid secret of the key. These requests do not count as offered. Their number is kept only as long as the rows of minutes.',
    ),
  groups: z
    .record(z.string(), z.object({ offered: count, admitted: count, units: count }))
    .optional()
    .describe(
      'The requests of each group of operations, by the name of the group. `units` were charged to the limits of the group.',
    ),
});

export type UsageRow = z.output<typeof usageRow>;

export const keyUsage = z.object({ step: words(...usageSteps), rows: list(usageRow) });

export type KeyUsage = z.output<typeof keyUsage>;
