import * as z from 'zod';
import { instant, list as shownList } from '../../keys/response-parts.ts';
import { intervalPattern, parseDuration } from '../../shared/schema/dates-and-durations.ts';
import { date, expects, fields, list } from '../../shared/schema/schema-parts.ts';

declare module '../interfaces/configuration.ts' {
  interface StatedDeprecationMembers extends z.output<z.ZodObject<typeof brownoutsShape>> {}
}

declare module '../interfaces/words.ts' {
  interface DeprecationShownMembers extends z.output<z.ZodObject<typeof brownoutsShownShape>> {}
}

const brownoutsMax = 20;

function interval(what: string) {
  return z.string(expects(what)).regex(intervalPattern, expects(what)).transform(parseDuration);
}

export const brownoutsShape = {
  'x-brownouts': list(
    fields('a mapping with from, for and perhaps every', {
      from: date,
      every: interval('a duration such as 1h or 7d').optional(),
      for: interval('a duration such as 5m'),
    }),
    'a list of mappings, each with from, for and perhaps every',
  )
    .min(1, expects('a list of at least one mapping with from and for'))
    .max(brownoutsMax, expects(`a list of at most ${brownoutsMax} mappings`))
    .optional(),
};

export const brownoutsShownShape = {
  brownouts: shownList(z.object({ from: instant, every: z.string().optional(), for: z.string() }))
    .optional()
    .describe('The rehearsals of the removal. A series ends when the next one begins, and at the sunset.'),
};
