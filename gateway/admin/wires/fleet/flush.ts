import * as z from 'zod';
import { behindShown, components } from '../../../keys/response-parts.ts';
import { defineWire } from '../../../shared/http/wire.ts';

export const flushedCounts = z
  .object({
    isComplete: z.boolean().describe('False if Redis did not reply, so that other processes are not known.'),
    behind: behindShown.describe('The processes that have not sent all their counts in time.'),
  })
  .register(components, { id: 'FlushedCounts' });

export const flushCountsWire = defineWire({
  method: 'POST',
  path: '/flush',
  operationId: 'flushCounts',
  tag: 'Fleet',
  summary: 'Make all processes send their counts',
  description:
    'Each process sends the counts of busy keys to the usage record every 10 s, and the counts of quiet keys after at most 60 s. A key is quiet while a process has fewer than 20 unsent requests of the key. This request waits until all processes have sent their counts, about 5 s at most. If `behind` is empty, a response about usage that follows lacks at most the last 10 s of other processes, because all requests of this kind within 10 s share a flush. Commands such as `usage` and `why` send this request first. A request for the usage of keys also makes the processes send their counts, but does not wait, so a later request shows these counts. A token that may read is sufficient.',
  answers: { 200: { description: 'The flush has ended.', schema: flushedCounts } },
});
