import type * as z from 'zod';
import type { FlushedFleet, FlushFleet } from '../../fleet/flush/flush-fleet.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import { jsonResponse } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { type behindShown, flushCountsWire, type flushedCounts } from '../wires/fleet/flush.ts';

export function behindView(behind: FlushedFleet['behind']): z.output<typeof behindShown> {
  return behind.map(({ id, host, pid, worker }) => ({ id, host, pid, worker }));
}

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
