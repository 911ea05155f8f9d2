import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';

/** Divides long work of the event loop into short slices. */
export interface Slices {
  /** Returns at once within a slice. At the end of a slice, it resolves after a pause in which the process serves requests. */
  rest(): Promise<void> | undefined;
}

export function createSlices({
  leakSliceMs,
  leakRestFactor,
}: Pick<Bounds, 'leakSliceMs' | 'leakRestFactor'>): Slices {
  let before = performance.eventLoopUtilization();
  return {
    rest() {
      // Time in which the work waits for Redis does not count.
      const { active } = performance.eventLoopUtilization(before);
      return active < leakSliceMs ? undefined : pause(leakRestFactor * active);
    },
  };

  async function pause(restMs: number): Promise<void> {
    await sleep(restMs);
    before = performance.eventLoopUtilization();
  }
}
