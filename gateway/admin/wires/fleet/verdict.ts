import * as z from 'zod';
import { instant, list, words } from '../../../keys/response-parts.ts';

export const verdictShown = z
  .object({
    severity: words('well', 'warning', 'bad').describe(
      'That of the most serious fault. A `notice` does not count.',
    ),
    sentence: z
      .string()
      .describe('The most serious fault, or the requests of the last ten seconds if no fault counts.'),
    faults: list(
      z.object({
        severity: words('bad', 'warning', 'notice').describe(
          '`bad`: requests fail or are counted wrongly. `warning`: an operator should check. `notice`: the fault has no effect on requests.',
        ),
        code: z.string().meta({
          pattern: '^[a-z_]+$',
          description: 'The kind of the fault, such as `upstream_down`.',
        }),
        text: z.string(),
        sinceAt: instant.describe('The beginning of the fault, as far as the processes know it.'),
      }),
    ).describe('All faults, the most serious first.'),
  })
  .describe('The health of the fleet.');

export type Verdict = z.output<typeof verdictShown>;
