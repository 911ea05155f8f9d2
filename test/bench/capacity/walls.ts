import { defaultBounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import type { Inputs } from './inputs.ts';
import { checksATarget } from './load.ts';
import { type Plan, planFleet } from './plan.ts';
import type { Costs } from './unit-costs.ts';

/** A bottleneck that more machines cannot remove. */
export interface Wall {
  readonly name: string;
  /** The share of the limit that the given load uses. If the share is above 1, the fleet cannot carry the load. */
  readonly used: number;
  /** A description that includes the limit. */
  readonly now: string;
  readonly remedy: string;
  /**
   * The requests per second at which the load reaches the bottleneck. Connections and targets grow at the same rate. Infinity if 128 times
   * the load does not reach the bottleneck.
   */
  readonly comesAt: number;
}

interface Kind {
  readonly name: string;
  readonly used: (plan: Plan, costs: Costs) => number;
  readonly now: (plan: Plan, costs: Costs) => string;
  readonly remedy: string;
}

/** The default of the Redis setting `maxclients`. */
const redisClientsMax = 10_000;
/** The largest number of servers for which the Redis Cluster specification is designed. */
const clusterNodesMax = 1_000;
/** The largest tolerable share of health checks among the requests to a target. */
const checksShareMax = 0.1;

const room = ({ inputs }: Plan) => 1 - inputs.headroom;
const perKey = ({ inputs, processes }: Plan) => Math.min(inputs.perKey, processes);
const requestsATarget = ({ inputs }: Plan) => inputs.requestsPerSecond / inputs.targets;
const count = (value: number) => Math.round(value).toLocaleString('en');
const core = (value: number) => `${value.toFixed(2)} cores`;

const kinds: readonly Kind[] = [
  {
    name: 'the hottest key on its master',
    used: (plan) => plan.load.hottest.redisCpu / room(plan),
    now: (plan) =>
      `${count(plan.load.hottest.requests)} requests/s in ${count(plan.load.hottest.calls)} calls/s, which take ${core(plan.load.hottest.redisCpu)}; the headroom leaves ${room(plan).toFixed(2)}`,
    remedy:
      'fewer processes for a key (`--per-key`), because the requests of one turn share a call, or several keys for that customer. The model gives the hottest key its own master. With more calls, replies take more than 50 ms. After three late replies, the processes decide all keys of that master without Redis, so limits apply per process',
  },
  {
    name: 'the hottest key in its processes',
    used: (plan) => plan.load.hottest.gatewayCpu / (perKey(plan) * room(plan)),
    now: (plan) =>
      `${count(plan.load.hottest.requests)} requests/s on ${count(perKey(plan))} processes, which take ${core(plan.load.hottest.gatewayCpu / perKey(plan))} each`,
    remedy: 'more processes for that key',
  },
  {
    name: 'the index of active keys on one slot',
    used: (plan) => plan.load.redisCpu.activeIndex / room(plan),
    now: (plan) =>
      `${count(plan.load.activeEntries)} entries/s, which take ${core(plan.load.redisCpu.activeIndex)}. Each process adds one entry per minute for each key that it serves, but at most ${count(defaultBounds.usageActiveKeysMax)} entries`,
    remedy: 'fewer processes for a key (`--per-key`), or `usage: { keepDays: 0 }`',
  },
  {
    name: 'the lists of all processes on one slot',
    used: (plan) => {
      const { presence, operations } = plan.load.redisCpu;
      return Math.max(
        plan.processes / defaultBounds.presenceProcessesMax,
        Math.max(presence, operations) / room(plan),
      );
    },
    now: (plan) =>
      `${count(plan.processes)} processes, and room for ${count(defaultBounds.presenceProcessesMax)} in the list; ${core(plan.load.redisCpu.presence)} for the list, ${core(plan.load.redisCpu.operations)} for the record of all operations`,
    remedy:
      'divide the fleet into environments, each with its own prefix and Redis. In a larger fleet `/api/v1/state` and the pages omit processes, commands do not wait for the counts of these processes, and nothing else fails',
  },
  {
    name: 'the keys in the heap of a process',
    used: (plan, costs) => plan.heapBytes / costs.heapBytesMax,
    now: (plan, costs) =>
      `${(plan.heapBytes / 2 ** 30).toFixed(1)} of ${(costs.heapBytesMax / 2 ** 30).toFixed(1)} GiB, with ${count(plan.load.held.recorded)} keys in the usage recorder`,
    remedy:
      'fewer processes for a key (`--per-key`), `NODE_OPTIONS=--max-old-space-size`, or `usage: { keepDays: 0 }`',
  },
  {
    name: 'a target gets one health check for ten requests',
    used: (plan) => checksATarget(plan.processes) / (checksShareMax * requestsATarget(plan)),
    now: (plan) =>
      `${count(checksATarget(plan.processes))} checks/s beside ${count(requestsATarget(plan))} requests/s`,
    remedy:
      'a balancer in front of each group of targets. No request fails because of the checks, but the checks cost gateways and targets CPU time',
  },
  {
    name: 'the failing targets on one slot',
    used: (plan) => plan.load.redisCpu.health / room(plan),
    now: (plan) =>
      `${count(plan.load.healthCalls)} calls/s, which take ${core(plan.load.redisCpu.health)}. Each process makes five calls a second`,
    remedy: 'divide the fleet into environments, each with its own prefix and Redis',
  },
  {
    name: 'connections to a master of Redis',
    used: (plan) => plan.redisConnections / redisClientsMax,
    now: (plan) => `${count(plan.redisConnections)} of ${count(redisClientsMax)} (\`maxclients\`)`,
    remedy: 'raise `maxclients` and the number of descriptors of Redis',
  },
  {
    name: 'servers of one Redis Cluster',
    used: (plan) => (plan.shards * (1 + plan.inputs.replicas)) / clusterNodesMax,
    now: (plan) => `${count(plan.shards * (1 + plan.inputs.replicas))} of ${count(clusterNodesMax)}`,
    remedy: 'divide the keys into environments, each with its own Cluster, or use fewer replicas',
  },
  {
    name: 'client connections of a process',
    used: (plan) => plan.inputs.connections / plan.processesLeft / defaultBounds.connectionsMax,
    now: (plan) =>
      `${count(plan.inputs.connections / plan.processesLeft)} of ${count(defaultBounds.connectionsMax)} connections with one zone down`,
    remedy: 'more processes than the CPU needs, or a load balancer that reuses its connections to gateways',
  },
];

/** The search multiplies or divides the load by at most `timesMax`. Then the search halves the range of the load `steps` times. */
const [timesMax, steps] = [128, 14];

/** The bottlenecks in the order in which a growing load reaches them. */
export function wallsOf(inputs: Inputs, costs: Costs): readonly Wall[] {
  const plan = planFleet(inputs, costs);
  const plans = new Map<number, Plan>();
  const usedAt = (kind: Kind, factor: number) => {
    const known = plans.get(factor) ?? planFleet(scaled(inputs, factor), costs);
    plans.set(factor, known);
    return kind.used(known, costs);
  };
  return kinds
    .map((kind) => ({
      name: kind.name,
      used: kind.used(plan, costs),
      now: kind.now(plan, costs),
      remedy: kind.remedy,
      comesAt: inputs.requestsPerSecond * findFactor((factor) => usedAt(kind, factor)),
    }))
    .sort((one, other) => one.comesAt - other.comesAt);
}

/** The factor by which the load may grow until a bottleneck is fully used. Infinity when the factor is above `timesMax`. */
function findFactor(usedAt: (factor: number) => number): number {
  let high = 1;
  while (high < timesMax && usedAt(high) < 1) high *= 2;
  if (usedAt(high) < 1) return Number.POSITIVE_INFINITY;
  let low = high / 2;
  while (low > 1 / timesMax && usedAt(low) >= 1) low /= 2;
  for (let step = 0; step < steps; step++) {
    const middle = (low + high) / 2;
    if (usedAt(middle) >= 1) high = middle;
    else low = middle;
  }
  return high;
}

function scaled(inputs: Inputs, factor: number): Inputs {
  return {
    ...inputs,
    requestsPerSecond: inputs.requestsPerSecond * factor,
    connections: inputs.connections * factor,
    targets: Math.max(1, inputs.targets * factor),
  };
}
