import * as z from 'zod';
import type { Leak } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { digestStart, instant } from '../../api/response-parts.ts';

export const leakShown = z
  .object({
    at: instant.describe('The time of the first report.'),
    by: z.string().describe('The reporter: `github`, or the name of the token that sent the report.'),
    ended: z.boolean().describe('Whether the secret is refused because of the report.'),
    url: z.string().optional().describe('The address at which the secret was found.'),
    source: z.string().optional().describe('The kind of place at which the secret was found.'),
    type: z.string().optional().describe('The name that the scanner gives to this kind of secret.'),
    ancestor: digestStart
      .optional()
      .describe(
        'The leaked secret from which the holder of the key issued this secret, directly or through others. Absent if this secret itself was found.',
      ),
  })
  .describe('Where a secret was found that everyone can read. Present only for a leaked secret.');

export function leakView({ atMs, ...leak }: Leak): z.output<typeof leakShown> {
  return { at: isoOf(atMs), ...leak };
}
