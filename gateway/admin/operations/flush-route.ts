import * as z from 'zod';
import type { FlushedFleet, FlushFleet } from '../../fleet/flush/flush-fleet.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { jsonResponse } from '../admin-response.ts';
import { count, list, positive, processId } from '../api/response-parts.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { defineWire } from '../api/wire.ts';

/** Processes that have not sent all their counts in time. */
export const behindShown = list(
  z.object({ id: processId, host: z.string(), pid: count, worker: positive.optional() }),
);

export function behindView(behind: FlushedFleet['behind']): z.output<typeof behindShown> {
  return behind.map(({ id, host, pid, worker }) => ({ id, host, pid, worker }));
}

/** The response of `POST /flush`. */
export const flushedCounts = z.object({
  isComplete: z.boolean().describe('False if Redis did not reply, so that other processes are not known.'),
  behind: behindShown.describe('The processes that have not sent all their counts in time.'),
});

export const flushCountsWire = defineWire({
  method: 'POST',
  path: '/flush',
  operationId: 'flushCounts',
  tag: 'Fleet',
  summary: 'Make all processes send their counts',
  description:
    'Each process sends the counts of busy keys to the usage record every 10 s, and the counts of quiet keys after at most 60 s. A key is quiet while a process has fewer than 20 unsent requests of the key. This request waits until all processes have sent their counts, at most 5 s. A response about usage that follows lacks at most the last 10 s of other processes, because all requests of this kind within 10 s share a flush. Commands send this request before they read usage. Every other request for usage also makes the processes send their counts, but does not wait, so a repeated request shows these counts. A token that may read is sufficient.',
  answers: { 200: { description: 'The flush has ended.', schema: flushedCounts } },
});

/**
 * `POST /flush` waits until all processes have sent their counts. The counts of a read that follows lack at most the last
 * `fleetFlushReusedMs` of other processes.
 */
export function flushRoute(
  flushFleet: FlushFleet,
  { fleetFlushReusedMs }: Pick<Bounds, 'fleetFlushReusedMs'>,
): Route {
  return defineRoute({
    ...flushCountsWire,
    needs: 'read',
    waits: true,
    async respond() {
      const { isComplete, behind } = await flushFleet(fleetFlushReusedMs);
      const shown: z.output<typeof flushedCounts> = { isComplete, behind: behindView(behind) };
      return jsonResponse(shown);
    },
  });
}
