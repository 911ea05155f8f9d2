import type { Fault, FoundFault } from '../../fleet/process-state.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';

export interface FaultWatch {
  /** Returns the present faults, each with its start time. */
  read(): readonly Fault[];
  close(): void;
}

/**
 * Checks for faults once a second, so that the start time of each fault is recorded even without requests to `/state`.
 */
export function watchFaults(
  find: () => readonly FoundFault[],
  { nowMs, bounds }: { /** Epoch ms. */ readonly nowMs: () => number; readonly bounds: Bounds },
): FaultWatch {
  /** The start time of each fault, by its code. The text cannot identify a fault, because the figures in the text change. */
  let since: ReadonlyMap<string, string> = new Map();

  function read(): readonly Fault[] {
    const foundAt = isoOf(nowMs());
    const faults = find().map((fault) => ({
      ...fault,
      sinceAt: fault.sinceAt ?? since.get(fault.code) ?? foundAt,
    }));
    since = new Map(faults.map(({ code, sinceAt }) => [code, sinceAt]));
    return faults;
  }

  const timer = setInterval(read, bounds.presenceIntervalMs).unref();
  return { read, close: () => clearInterval(timer) };
}
