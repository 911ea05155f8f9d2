import * as z from 'zod';
import { instant, list, words } from '../../../keys/response-parts.ts';

export const verdictShown = z
  .object({
    severity: words('well', 'warning', 'bad').describe(
      'The severity of the most serious fault. A fault with the severity `notice` does not count.',
    ),
    sentence: z
      .string()
      .describe(
        'The most serious fault as a text. Without a fault that counts, a text about the requests of the last ten seconds.',
      ),
    faults: list(
      z.object({
        severity: words('bad', 'warning', 'notice').describe(
          '`bad`: requests fail or are counted wrongly. `warning`: an operator should check. `notice`: the fault has no effect on requests.',
        ),
        code: z.string().meta({
          pattern: '^[a-z_]+$',
          description: 'The kind of the fault, such as `upstream_down`. Later versions may have other kinds.',
        }),
        text: z.string().describe('The fault as a text.'),
        sinceAt: instant.describe('The beginning of the fault, as far as the processes know it.'),
      }),
    ).describe(
      'All faults, with the most serious fault first. A fault that several processes report is listed once.',
    ),
  })
  .describe('The health of the fleet, as the pages and `tollgate top` show it.');

export type Verdict = z.output<typeof verdictShown>;
