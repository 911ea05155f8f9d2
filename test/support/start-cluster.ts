import type { Redis } from 'ioredis';
import { inspect } from './inspect.ts';
import { freePort, type RedisServer, startRedis } from './start-redis.ts';
import { until } from './until.ts';

/** A Redis Cluster of real processes on this machine: masters that share the slots evenly, and a replica of each. */
export interface RedisCluster {
  /** Of the servers that were the masters at the start. */
  readonly urls: readonly string[];
  readonly masters: readonly ClusterServer[];
  /** `replicas[i]` replicates `masters[i]`. */
  readonly replicas: readonly ClusterServer[];
  /** The master at the start that a slot was given to. */
  ownerOf(slot: number): ClusterServer;
  /** Adds a master without slots. */
  addMaster(): Promise<ClusterServer>;
  /** Every key of this pattern, on all masters. */
  keys(pattern: string): Promise<string[]>;
  stop(): Promise<void>;
}

export interface ClusterServer {
  readonly server: RedisServer;
  /** `host:port`, as the cluster calls it. */
  readonly name: string;
  readonly id: string;
  /** A connection to this server alone. */
  readonly inspector: Redis;
}

const slotsCount = 16_384;

/**
 * @param options.nodeTimeoutMs after which a server counts as failed; a replica is promoted about as long after that
 * @param options.wantsAllSlots whether the rest stops serving while slots have no master, as is Redis's default
 */
export async function startCluster({
  mastersCount = 3,
  nodeTimeoutMs = 1_000,
  wantsAllSlots = false,
  hasReplicas = true,
} = {}): Promise<RedisCluster> {
  const started: ClusterServer[] = [];
  const launch = async () => {
    const busPort = await freePort();
    const server = await startRedis([
      ...['--cluster-enabled', 'yes', '--cluster-port', `${busPort}`],
      ...['--cluster-require-full-coverage', wantsAllSlots ? 'yes' : 'no'],
      ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
    ]);
    const inspector = inspect(server.url);
    const id = String(await inspector.cluster('MYID'));
    const node = { server, busPort, name: `127.0.0.1:${server.port}`, id, inspector };
    started.push(node);
    return node;
  };
  const join = async (node: ClusterServer & { readonly busPort: number }) => {
    await started[0]?.inspector.call('CLUSTER', 'MEET', '127.0.0.1', node.server.port, node.busPort);
  };
  const everybodyKnows = (count: number) =>
    until(`${count} servers know each other`, async () => {
      const infos = await Promise.all(started.map(({ inspector }) => inspector.cluster('INFO')));
      return infos.every((info) => String(info).includes(`cluster_known_nodes:${count}`));
    });

  const count = hasReplicas ? 2 * mastersCount : mastersCount;
  const nodes = await Promise.all(Array.from({ length: count }, launch));
  const [masters, replicas] = [nodes.slice(0, mastersCount), nodes.slice(mastersCount)];
  const firstSlot = (index: number) => Math.floor((index * slotsCount) / mastersCount);
  await Promise.all(nodes.map((node, index) => node.inspector.cluster('SET-CONFIG-EPOCH', index + 1)));
  await Promise.all(
    masters.map(({ inspector }, index) =>
      inspector.call('CLUSTER', 'ADDSLOTSRANGE', firstSlot(index), firstSlot(index + 1) - 1),
    ),
  );
  await Promise.all(nodes.slice(1).map(join));
  await everybodyKnows(count);
  await Promise.all(
    replicas.map(({ inspector }, index) => inspector.cluster('REPLICATE', masters[index]?.id ?? '')),
  );
  await until('the cluster serves', async () => {
    const infos = await Promise.all(nodes.map(({ inspector }) => inspector.cluster('INFO')));
    const links = await Promise.all(replicas.map(({ inspector }) => inspector.info('replication')));
    return (
      infos.every((info) => String(info).includes('cluster_state:ok')) &&
      links.every((link) => link.includes('master_link_status:up'))
    );
  });

  // Only now: on a busy machine servers that meet take longer than that.
  await Promise.all(
    nodes.map(({ inspector }) => inspector.config('SET', 'cluster-node-timeout', nodeTimeoutMs)),
  );

  return {
    urls: masters.map(({ server }) => server.url),
    masters,
    replicas,
    ownerOf(slot) {
      const owner = masters.findLast((_, index) => firstSlot(index) <= slot);
      if (owner === undefined) throw new Error(`no slot ${slot}`);
      return owner;
    },
    async addMaster() {
      const node = await launch();
      await join(node);
      await everybodyKnows(started.length);
      return node;
    },
    async keys(pattern) {
      const lists = await Promise.all(masters.map(({ inspector }) => inspector.keys(pattern)));
      return lists.flat();
    },
    async stop() {
      for (const { inspector } of started) inspector.disconnect();
      await Promise.all(started.map(({ server }) => server.stop()));
    },
  };
}

/** Moves a slot with its keys, as `redis-cli --cluster reshard` does, a few keys at a time. */
export async function moveSlot(slot: number, from: ClusterServer, to: ClusterServer): Promise<void> {
  await to.inspector.cluster('SETSLOT', slot, 'IMPORTING', from.id);
  await from.inspector.cluster('SETSLOT', slot, 'MIGRATING', to.id);
  for (;;) {
    const keys = await from.inspector.cluster('GETKEYSINSLOT', slot, 10);
    if (keys.length === 0) break;
    await from.inspector.migrate('127.0.0.1', to.server.port, '', 0, 5_000, 'KEYS', ...keys.map(String));
  }
  await to.inspector.cluster('SETSLOT', slot, 'NODE', to.id);
  await from.inspector.cluster('SETSLOT', slot, 'NODE', to.id);
}
