import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { inspect } from './inspect.ts';
import type { RedisTls } from './redis-tls.ts';
import { type RedisServer, startRedis } from './start-redis.ts';
import { startTcpRelay, type TcpRelay } from './tcp-relay.ts';
import { until } from './until.ts';

/** A Redis Cluster of real processes on this machine: masters that share the slots evenly, each with a replica. */
export interface RedisCluster {
  /** The URLs of the initial masters. */
  readonly urls: readonly string[];
  readonly masters: readonly ClusterServer[];
  /** `replicas[i]` replicates `masters[i]`. */
  readonly replicas: readonly ClusterServer[];
  /** The initial master of a slot. */
  ownerOf(slot: number): ClusterServer;
  /** The relays between each initial master and all other processes, if `relayed` is set. */
  readonly relays: readonly TcpRelay[];
  /** Adds a master without slots. */
  addMaster(): Promise<ClusterServer>;
  /**
   * Sets the time without a reply after which the Cluster considers a server failed. The replica of a failed server is promoted after about
   * `2 * nodeTimeoutMs`. Until this call, Redis's default timeout applies, so a paused server remains a master.
   */
  promoteAfter(nodeTimeoutMs: number): Promise<void>;
  /** Every key that matches this pattern, on all masters. */
  keys(pattern: string): Promise<string[]>;
  stop(): Promise<void>;
}

export interface ClusterServer {
  readonly server: RedisServer;
  /** The server's name in the Cluster, `host:port`. */
  readonly name: string;
  readonly id: string;
  /** A connection to this server only. */
  readonly inspector: Redis;
}

const slotsCount = 16_384;

/**
 * The initial configuration of a server. Each server starts with the addresses of all other servers, without `CLUSTER MEET`.
 */
interface Seat {
  readonly id: string;
  readonly port: number;
  /** The port that the other servers use: the port of the relay, if there is one. */
  readonly shownPort: number;
  readonly busPort: number;
  readonly replicaOf?: Seat;
  readonly slots?: string;
}

export interface ClusterOptions {
  readonly mastersCount?: number;
  /** Whether all servers stop serving when a slot has no master, which is Redis's default. */
  readonly wantsAllSlots?: boolean;
  readonly hasReplicas?: boolean;
  readonly relayed?: boolean;
  /** The host name of each server for clients, in place of its address. */
  readonly hostname?: string;
  /** Options of each server, for `redis-server`. */
  readonly options?: readonly string[];
  readonly tls?: RedisTls;
}

export async function startCluster({
  mastersCount = 3,
  wantsAllSlots = false,
  hasReplicas = true,
  relayed = false,
  hostname,
  options: further = [],
  tls,
}: ClusterOptions = {}): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-cluster-'));
  const firstSlot = (index: number) => Math.floor((index * slotsCount) / mastersCount);
  const masterSeats = await Promise.all(
    Array.from({ length: mastersCount }, (_, index) =>
      newSeat({ slots: `${firstSlot(index)}-${firstSlot(index + 1) - 1}` }),
    ),
  );
  const relays = relayed ? await Promise.all(masterSeats.map(({ port }) => startTcpRelay(port))) : [];
  relays.forEach(({ port }, index) => {
    masterSeats[index] = { ...(masterSeats[index] as Seat), shownPort: port };
  });
  const replicaSeats = hasReplicas
    ? await Promise.all(masterSeats.map((replicaOf) => newSeat({ replicaOf })))
    : [];
  const started: ClusterServer[] = [];
  const launch = async (own: Seat, all: readonly Seat[]): Promise<ClusterServer> => {
    const file = join(folder, `${own.port}.conf`);
    const epochs = `vars currentEpoch ${all.length} lastVoteEpoch 0`;
    await writeFile(
      file,
      `${[...all.map((seat) => nodeLine(seat, own, all, hostname)), epochs].join('\n')}\n`,
    );
    const options = [
      ...['--cluster-enabled', 'yes', '--cluster-port', `${own.busPort}`, '--cluster-config-file', file],
      ...[tls ? '--cluster-announce-tls-port' : '--cluster-announce-port', `${own.shownPort}`],
      ...(tls ? ['--tls-cluster', 'yes'] : []),
      ...(hostname === undefined ? [] : ['--cluster-announce-hostname', hostname]),
      ...(hostname === undefined ? [] : ['--cluster-preferred-endpoint-type', 'hostname']),
      ...['--cluster-require-full-coverage', wantsAllSlots ? 'yes' : 'no'],
      // A master remains a master after its last slot has been moved away.
      ...['--cluster-allow-replica-migration', 'no'],
      ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
      ...further,
    ];
    const server = await startRedis(options, own.port, tls);
    const name = `${hostname ?? '127.0.0.1'}:${own.shownPort}`;
    const node = { server, name, id: own.id, inspector: inspect(server.url, tls) };
    started.push(node);
    return node;
  };
  const seats = [...masterSeats, ...replicaSeats];
  const nodes = await Promise.all(seats.map((seat) => launch(seat, seats)));
  const [masters, replicas] = [nodes.slice(0, mastersCount), nodes.slice(mastersCount)];
  await until('the Cluster serves requests', async () => {
    const infos = await Promise.all(nodes.map(({ inspector }) => inspector.cluster('INFO')));
    const links = await Promise.all(replicas.map(({ inspector }) => inspector.info('replication')));
    return (
      infos.every((info) => String(info).includes('cluster_state:ok')) &&
      links.every((link) => link.includes('master_link_status:up'))
    );
  });
  return {
    urls: masters.map(({ name }) => `${tls ? 'rediss' : 'redis'}://${name}`),
    masters,
    relays,
    replicas,
    ownerOf(slot) {
      const owner = masters.findLast((_, index) => firstSlot(index) <= slot);
      if (owner === undefined) throw new Error(`no slot ${slot}`);
      return owner;
    },
    async addMaster() {
      const seat = await newSeat({});
      const node = await launch(seat, [seat]);
      await masters[0]?.inspector.call('CLUSTER', 'MEET', '127.0.0.1', seat.port, seat.busPort);
      await until('every server knows the new master', async () => {
        const lists = await Promise.all(started.map(({ inspector }) => inspector.cluster('NODES')));
        return lists.every((list) =>
          nodes.every(({ id }) => String(list).includes(id) && String(list).includes(seat.id)),
        );
      });
      await until('the new master serves', async () =>
        String(await node.inspector.cluster('INFO')).includes('cluster_state:ok'),
      );
      return node;
    },
    async promoteAfter(nodeTimeoutMs) {
      await Promise.all(
        started.map(({ inspector }) => inspector.config('SET', 'cluster-node-timeout', nodeTimeoutMs)),
      );
    },
    async keys(pattern) {
      const lists = await Promise.all(masters.map(({ inspector }) => inspector.keys(pattern)));
      return lists.flat();
    },
    async stop() {
      for (const { inspector } of started) inspector.disconnect();
      await Promise.all(started.map(({ server }) => server.stop()));
      await Promise.all(relays.map((relay) => relay.stop()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function newSeat(more: Pick<Seat, 'replicaOf' | 'slots'>): Promise<Seat> {
  const [port, busPort] = [await freePort(), await freePort()];
  return { id: randomBytes(20).toString('hex'), port, shownPort: port, busPort, ...more };
}

/** A line of a server's own `nodes.conf`. */
function nodeLine(seat: Seat, own: Seat, all: readonly Seat[], hostname?: string): string {
  const { id, shownPort: port, busPort, replicaOf, slots = '' } = seat;
  const role = replicaOf === undefined ? 'master' : 'slave';
  const flags = seat === own ? `myself,${role}` : role;
  const epoch = all.indexOf(replicaOf ?? seat) + 1;
  const place = `127.0.0.1:${port}@${busPort}${hostname === undefined ? '' : `,${hostname}`}`;
  return `${id} ${place} ${flags} ${replicaOf?.id ?? '-'} 0 0 ${epoch} connected ${slots}`.trim();
}

/** Moves a slot with its keys, a few keys at a time, like `redis-cli --cluster reshard`. */
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
