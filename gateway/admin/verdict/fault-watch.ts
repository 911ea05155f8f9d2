import type { Fault } from '../../fleet/process-state.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { Bounds } from '../../shared/timeouts-and-sizes.ts';
import type { FoundFault } from './judge-gateway.ts';

export interface FaultWatch {
  /** The present faults, each with its beginning. */
  read(): readonly Fault[];
  close(): void;
}

/** Looks for faults once a second, so that the beginning of each fault is known even without requests for the state. */
export function watchFaults(
  find: () => readonly FoundFault[],
  { nowMs, bounds }: { /** Epoch ms. */ readonly nowMs: () => number; readonly bounds: Bounds },
): FaultWatch {
  /** When each fault began, by its code. The text of a fault may change, because it has figures. */
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
