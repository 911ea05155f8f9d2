import { keyGroups } from './key-groups.ts';
import { heldBytes, loadOf, packedBytes, total } from './load.ts';
import type { Costs, FleetFigure, FleetRun } from './unit-costs.ts';

export interface Comparison {
  readonly figure: FleetFigure;
  readonly predicted: number;
  readonly measured: number;
}

/**
 * Compares the model's figures for a run on the small fleet with the measured figures. @param costs at the speed of that run
 */
export function compareFleet(run: FleetRun, costs: Costs): readonly Comparison[] {
  const { keys, skew, processes, shards, isFull, requestsPerSecond, measured } = run;
  // The processes share a core. With n processes, a turn therefore takes n times as long.
  const turnSeconds = isFull ? costs.fullTurnSeconds * processes : costs.turnSeconds;
  const load = loadOf(
    { requestsPerSecond, groups: keyGroups(keys, skew), refusedShare: 0, directory: true, recorded: true },
    { processes, perKey: processes, shards, replicas: 0, targets: 1 },
    { ...costs, turnSeconds },
  );
  const predicted: Record<FleetFigure, number> = {
    gatewayCpu: total(load.gatewayCpu) / requestsPerSecond,
    decisions: load.decisions / requestsPerSecond,
    batches: load.batches / requestsPerSecond,
    lookUps: load.lookUps / requestsPerSecond,
    redisCpu: total(load.redisCpu) / requestsPerSecond,
    redisOctets: load.redisOctets / requestsPerSecond,
    processBytes: costs.processBytes + heldBytes(load, costs) + packedBytes(load, costs),
    directoryBytes: costs.directoryBytes,
    // The octets of a key's counts and record in a run that lasts less than two minutes.
    countsBytes:
      costs.countsBytes + costs.usageDayBytes + costs.usageMinuteBytes + processes * costs.usageSenderBytes,
  };
  return (Object.keys(measured) as FleetFigure[]).map((figure) => ({
    figure,
    predicted: predicted[figure],
    measured: measured[figure] ?? Number.NaN,
  }));
}
