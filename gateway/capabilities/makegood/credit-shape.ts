import * as z from 'zod';
import { count, instant, list } from '../../keys/response-parts.ts';

declare module '../../shared/model.ts' {
  interface KeyMembers extends z.output<z.ZodObject<typeof creditsShape>> {}
}

export const byWindow = z.object({ day: count, month: count });

const creditShown = z.object({
  at: instant,
  from: instant.describe('The beginning of the period in which the requests failed.'),
  to: instant,
  failedUnits: count.describe(
    'The units of the failed requests for which the key had received no credit before.',
  ),
  givenBack: byWindow,
});

/** The member of a key in responses to operators and to the holder of the key. */
export const creditsShape = {
  credits: list(creditShown)
    .optional()
    .describe('The last credits of the key, at most 5, the newest first; absent if none is known.'),
};

export type CreditShown = z.output<typeof creditShown>;
