import type { Redis } from 'ioredis';

/** The work of all Redis servers together since their start. */
export interface RedisCounts {
  readonly cpuSeconds: number;
  /** The octets in both directions between clients and servers. */
  readonly octets: number;
  /** Octets to replicas. */
  readonly replicatedOctets: number;
  readonly decisions: number;
  /** The batches of the usage record, and the calls that added these batches. */
  readonly batches: number;
  readonly batchCalls: number;
  readonly lookUps: number;
  readonly presences: number;
  /** The memory in use, without the buffers of clients and replicas. */
  readonly memoryBytes: number;
}

/** @param servers one connection to each server */
export async function readCounts(servers: readonly Redis[]): Promise<RedisCounts> {
  const each = await Promise.all(
    servers.map(async (server) => {
      const sections = ['cpu', 'stats', 'memory', 'commandstats'].map((section) => server.info(section));
      return countsIn((await Promise.all(sections)).join('\n'));
    }),
  );
  return each.reduce(addUp);
}

/**
 * The counts from `INFO`. Some commands are used by only one script, so the number of these commands is the number of calls of the script.
 * The number of ZRANGEBYSCORE commands is the number of states that processes have published. The script that publishes a state and a look-up
 * have one GET command each. A look-up also calls a script. The script of the usage record has one EXPIREAT command for each batch. The
 * scripts of decisions, states and look-ups read the time once in each call, and the script of the usage record does not.
 */
export function countsIn(info: string): RedisCounts {
  const figure = (name: string) => Number(new RegExp(`^${name}([\\d.]+)`, 'm').exec(info)?.[1] ?? 0);
  const calls = (command: string) => figure(`cmdstat_${command}:calls=`);
  const [batches, presences] = [calls('expireat'), calls('zrangebyscore')];
  const lookUps = calls('get') - presences;
  return {
    cpuSeconds: figure('used_cpu_sys:') + figure('used_cpu_user:'),
    octets: figure('total_net_input_bytes:') + figure('total_net_output_bytes:'),
    replicatedOctets: figure('total_net_repl_output_bytes:'),
    decisions: calls('time') - presences - lookUps,
    batches,
    batchCalls: calls('evalsha') + calls('eval') - calls('time'),
    lookUps,
    presences,
    memoryBytes: figure('used_memory:') - figure('mem_clients_normal:') - figure('mem_clients_slaves:'),
  };
}

export function since(before: RedisCounts, now: RedisCounts): RedisCounts {
  return combine(now, before, (one, other) => one - other);
}

function addUp(one: RedisCounts, other: RedisCounts): RedisCounts {
  return combine(one, other, (a, b) => a + b);
}

function combine(
  one: RedisCounts,
  other: RedisCounts,
  how: (one: number, other: number) => number,
): RedisCounts {
  const names = Object.keys(one) as (keyof RedisCounts)[];
  return Object.fromEntries(
    names.map((name) => [name, how(one[name], other[name])]),
  ) as unknown as RedisCounts;
}
