import * as z from 'zod';
import type { FlushedFleet, FlushFleet } from '../../fleet/flush/flush-fleet.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { jsonResponse } from '../admin-response.ts';
import { count, list, positive, processId } from '../api/response-parts.ts';
import { defineRoute, type Route } from '../api/route.ts';

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

/**
 * `POST /flush` waits until all processes have sent their counts. The counts of a read that follows lack at most the last
 * `fleetFlushReusedMs` of other processes.
 */
export function flushRoute(
  flushFleet: FlushFleet,
  { fleetFlushReusedMs }: Pick<Bounds, 'fleetFlushReusedMs'>,
): Route {
  return defineRoute({
    method: 'POST',
    path: '/flush',
    needs: 'read',
    waits: true,
    async respond() {
      const { isComplete, behind } = await flushFleet(fleetFlushReusedMs);
      const shown: z.output<typeof flushedCounts> = { isComplete, behind: behindView(behind) };
      return jsonResponse(shown);
    },
  });
}
