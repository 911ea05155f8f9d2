import type { Run } from '../../gateway/quota/runs.ts';

/** Returns the runs of a call whose requests all cost the same. */
export function oneRun(requests: number, units = 1): readonly [Run] {
  return [{ requests, units }];
}
