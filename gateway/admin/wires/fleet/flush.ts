import * as z from 'zod';
import { behindShown, components } from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';

export const flushedCounts = z
  .object({
    isComplete: z.boolean().describe('False if Redis did not reply, so that other processes are not known.'),
    behind: behindShown.describe('The listed processes that did not send all their counts in time.'),
  })
  .register(components, { id: 'FlushedCounts' });

export const flushCountsWire = defineWire({
  method: 'POST',
  path: '/flush',
  operationId: 'flushCounts',
  tag: 'Fleet',
  summary: 'Make all processes send their counts',
  description:
    'While Redis replies, each process sends the counts of busy keys to the usage record every 10 s, and those of other keys after at most 60 s. This request waits until all processes have sent their counts, about 5 s at most. If `isComplete` is true and `behind` is empty, the usage record then lacks about the last 10 s of other listed processes at most. Most other requests about usage also make the processes send their counts, at most once in 10 s, but do not wait. A token that may read is sufficient.',
  answers: { 200: { description: 'The flush has ended.', schema: flushedCounts } },
});
