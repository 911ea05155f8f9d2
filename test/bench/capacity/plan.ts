import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import type { Inputs } from './inputs.ts';
import { keyGroups, sumOver } from './key-groups.ts';
import {
  heldBytes,
  type Load,
  loadOf,
  packedBytes,
  sendersMax,
  shareSeenWithin,
  type Traffic,
  total,
} from './load.ts';
import type { Costs } from './unit-costs.ts';

/** Plans a fleet that carries the given load, even with one zone down. */
export interface Plan {
  readonly inputs: Inputs;
  /** The load at the peak, with all zones up. */
  readonly load: Load;
  /** One process per core. `processesLeft` processes carry the whole load with one zone down. */
  readonly processes: number;
  readonly processesLeft: number;
  /** The share of a core that a process uses, with all zones up and with one zone down. */
  readonly coreUse: number;
  readonly coreUseLeft: number;
  /** The number of masters that CPU or memory requires, at least three. */
  readonly shards: number;
  readonly shardsForCpu: number;
  readonly shardsForMemory: number;
  /** The memory of all masters. Each set of replicas needs the same memory again. */
  readonly redisBytes: RedisBytes;
  /** The memory of one process. */
  readonly processBytes: number;
  readonly heapBytes: number;
  /** The number of connections to one master. */
  readonly redisConnections: number;
  /** The largest rates of a single key, if its master has no other work: requests per second, and calls per second. */
  readonly hotKeyRequestsMax: number;
  readonly hotKeyCallsMax: number;
}

export interface RedisBytes {
  readonly counts: number;
  readonly directory: number;
  readonly record: number;
  readonly totals: number;
}

/** The smallest number of masters of a Redis Cluster. */
const shardsMin = 3;
const rounds = 200;
/**
 * The search stops at this number of processes. It gets this far if each further process causes more work than the process can do.
 */
const processesMax = 1e7;
const secondsPerDay = 86_400;
const minutesPerDay = 1_440;
/** The additional days for which the usage record of a day is kept (`usage/usage.ts`). */
const graceDays = 2;

/**
 * Finds the smallest fleet that carries the peak with one zone down and the headroom on each core. The number of processes and the number
 * of calls depend on each other, so the search computes them alternately.
 */
export function planFleet(inputs: Inputs, costs: Costs): Plan {
  const { zones, replicas, targets, headroom, directory, perKey } = inputs;
  const traffic = trafficOf(inputs);
  const use = 1 - headroom;
  const left = (processes: number) => (zones === 1 ? processes : (processes * (zones - 1)) / zones);
  const fleetOf = (processes: number, shards: number) => ({
    processes,
    shards,
    replicas,
    targets,
    perKey: Math.min(perKey, processes),
  });

  let [processes, shards, shardsForCpu, shardsForMemory] = [zones, shardsMin, 1, 1];
  for (let round = 0; round < rounds; round++) {
    const cores = total(loadOf(traffic, fleetOf(left(processes), shards), costs).gatewayCpu) / use;
    const needed = Math.min(
      processesMax,
      ceil(zones === 1 ? cores : cores / (zones - 1)) * (zones === 1 ? 1 : zones),
    );
    const load = loadOf(traffic, fleetOf(needed, shards), costs);
    shardsForCpu = ceil(total(load.redisCpu) / use);
    shardsForMemory = ceil(
      sum(redisBytesOf(traffic, inputs, Math.min(perKey, needed), costs)) /
        (inputs.shardBytesMax * defaultBounds.usageMemoryShareMax),
    );
    const shardsNeeded = Math.max(shardsMin, shardsForCpu, shardsForMemory);
    if (needed === processes && shardsNeeded === shards) break;
    [processes, shards] = [needed, shardsNeeded];
  }

  const load = loadOf(traffic, fleetOf(processes, shards), costs);
  const held = heldBytes(load, costs);
  const hotKeyCallsMax = use / (costs.hotDecisionCpu + costs.readCpu + replicas * costs.replicaCpu);
  return {
    inputs,
    load,
    processes,
    processesLeft: left(processes),
    coreUse: total(load.gatewayCpu) / processes,
    coreUseLeft: total(loadOf(traffic, fleetOf(left(processes), shards), costs).gatewayCpu) / left(processes),
    shards,
    shardsForCpu,
    shardsForMemory,
    redisBytes: redisBytesOf(traffic, inputs, Math.min(perKey, processes), costs),
    processBytes:
      costs.processBytes +
      held +
      packedBytes(load, costs) +
      (inputs.connections / left(processes)) * costs.connectionBytes,
    heapBytes: held,
    redisConnections: processes * connectionsPerProcess(directory) + replicas,
    hotKeyRequestsMax: requestsForCalls(hotKeyCallsMax, Math.min(perKey, processes), costs),
    hotKeyCallsMax,
  };
}

/** A process has one connection for decisions, one for records and a third for the directory. */
function connectionsPerProcess(directory: boolean): number {
  return directory ? 3 : 2;
}

function trafficOf({
  requestsPerSecond,
  activeKeys,
  skew,
  refusedShare,
  directory,
  keepDays,
}: Inputs): Traffic {
  return {
    requestsPerSecond,
    groups: keyGroups(activeKeys, skew),
    refusedShare,
    directory,
    recorded: keepDays > 0,
  };
}

function redisBytesOf(
  { groups }: Traffic,
  { requestsPerSecond, meanShare, keys, activeKeys, directory, keepDays }: Inputs,
  perKey: number,
  costs: Costs,
): RedisBytes {
  const dayBytes = sumOver(groups, ({ share }) => {
    const mean = share * requestsPerSecond * meanShare;
    const minutes = minutesPerDay * shareSeenWithin(60, mean);
    const senders = Math.min(perKey, sendersMax, Math.max(1, mean * secondsPerDay));
    return costs.usageDayBytes + minutes * costs.usageMinuteBytes + senders * costs.usageSenderBytes;
  });
  return {
    counts: activeKeys * costs.countsBytes,
    directory: directory ? keys * costs.directoryBytes : 0,
    record: keepDays === 0 ? 0 : dayBytes * (keepDays + graceDays),
    totals: keepDays === 0 ? 0 : keys * costs.totalsBytes,
  };
}

/**
 * Returns the request rate of one key at which the processes make `calls` calls per second. Requests of a turn share one call, so the
 * number of calls has a limit. Returns Infinity when `calls` is above this limit.
 */
function requestsForCalls(calls: number, processes: number, { turnSeconds }: Costs): number {
  const share = (calls / processes) * turnSeconds;
  return share >= 1 ? Number.POSITIVE_INFINITY : (-Math.log1p(-share) / turnSeconds) * processes;
}

/** Rounds up, but ignores floating-point errors just above a whole number. */
function ceil(value: number): number {
  return Math.max(1, Math.ceil(value - 1e-9));
}

export function sum(parts: RedisBytes): number {
  return Object.values(parts).reduce((total, part) => total + part, 0);
}
