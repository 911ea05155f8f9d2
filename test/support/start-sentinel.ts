import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { inspect } from './inspect.ts';
import { redisBinary } from './redis-binary.ts';
import type { RedisTls } from './redis-tls.ts';
import { type RedisServer, startRedis, waitUntilReady } from './start-redis.ts';
import { startTcpRelay, type TcpRelay } from './tcp-relay.ts';
import { until } from './until.ts';

/** One Redis master with two replicas, and three Sentinels that monitor them, as real processes on this machine. */
export interface RedisUnderSentinel {
  /** The name of the master in the configuration of the Sentinels. */
  readonly name: string;
  /** The `host:port` of each Sentinel. */
  readonly hosts: readonly string[];
  /** The relays between the initial master and all other processes, if `relayed` is set. */
  readonly relays: readonly TcpRelay[];
  /** All servers; the server with index 0 is the initial master. */
  readonly servers: readonly SentinelServer[];
  /** The current master according to the Sentinels. */
  master(): Promise<SentinelServer>;
  /**
   * Cuts the first server off from the Sentinels and its replicas, as in a network partition. Other clients can still write to the first
   * server.
   */
  isolateFirst(): Promise<void>;
  /**
   * Sets the time without a reply after which the Sentinels consider a server down and promote a replica. Until this call the Sentinels
   * promote no replica, so a paused master remains the master.
   */
  promoteAfter(downAfterMs: number): Promise<void>;
  /** Reconnects the isolated server. */
  reunite(): Promise<void>;
  /** Makes the Sentinels promote a replica, whether or not the master is alive. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

interface SentinelServer {
  readonly server: RedisServer;
  readonly inspector: Redis;
}

const peers = { user: 'peers', password: 'only-for-peers' } as const;
const [master, sentinelsCount, quorum] = ['main', 3, 2];

export interface SentinelOptions {
  readonly relayed?: boolean;
  /** Options of each server, for `redis-server`. */
  readonly options?: readonly string[];
  /** Lines for each Sentinel's file. */
  readonly sentinelLines?: readonly string[];
  /** TLS settings for servers and Sentinels. */
  readonly tls?: RedisTls;
}

export async function startSentinel({
  relayed = false,
  options: further = [],
  sentinelLines = [],
  tls,
}: SentinelOptions = {}): Promise<RedisUnderSentinel> {
  // Sentinels and replicas have their own user, so that a test can disconnect only Sentinels and replicas from a server.
  const options = [
    ...['--user', peers.user, 'on', `>${peers.password}`, '~*', '&*', '+@all'],
    ...['--masteruser', peers.user, '--masterauth', peers.password],
    ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'],
    ...further,
  ];
  const servers = await Promise.all(
    Array.from({ length: 3 }, async (): Promise<SentinelServer> => {
      const server = await startRedis(options, undefined, tls);
      return { server, inspector: inspect(server.url, tls) };
    }),
  );
  const [first, ...replicas] = servers;
  if (first === undefined) throw new Error('no server');
  const relays = relayed ? [await startTcpRelay(first.server.port)] : [];
  const masterPort = relays[0]?.port ?? first.server.port;
  await Promise.all(replicas.map(({ inspector }) => inspector.replicaof('127.0.0.1', masterPort)));
  await until('the replicas are synchronised with their master', async () => {
    const links = await Promise.all(replicas.map(({ inspector }) => inspector.info('replication')));
    return links.every((link) => link.includes('master_link_status:up'));
  });

  const folder = await mkdtemp(join(tmpdir(), 'tollgate-sentinel-'));
  const sentinels = await Promise.all(
    Array.from({ length: sentinelsCount }, (_, index) =>
      launchSentinel(join(folder, `${index}.conf`), {
        masterPort,
        sentinelLines,
        tls,
      }),
    ),
  );
  await until('the Sentinels know each other and the replicas', async () => {
    const all = await Promise.all(
      sentinels.map(({ inspector }) => inspector.call('SENTINEL', 'MASTER', master)),
    );
    return all.every((reply) => {
      const flat = reply as string[];
      const field = (name: string) => flat[flat.indexOf(name) + 1];
      return (
        field('num-slaves') === '2' && field('num-other-sentinels') === '2' && field('flags') === 'master'
      );
    });
  });

  return {
    name: master,
    hosts: sentinels.map(({ port }) => `127.0.0.1:${port}`),
    servers,
    relays,
    async master() {
      const [port] = await Promise.all(sentinels.slice(0, 1).map(masterPortOf));
      const found = servers.find(({ server }) => `${server.port}` === port);
      if (found === undefined) throw new Error(`the master is at port ${port}`);
      return found;
    },
    async isolateFirst() {
      // Redis refuses the AUTH of a Sentinel whose user is switched off. Without `requirepass`, Redis would still reply to the other
      // commands of this Sentinel. The setting does not affect open connections of other clients.
      await first.inspector.config('SET', 'requirepass', peers.password);
      await first.inspector.call('ACL', 'SETUSER', peers.user, 'off');
      await first.inspector.call('CLIENT', 'KILL', 'USER', peers.user);
    },
    async promoteAfter(downAfterMs) {
      const set = ['SET', master, 'down-after-milliseconds', downAfterMs] as const;
      await Promise.all(sentinels.map(({ inspector }) => inspector.call('SENTINEL', ...set)));
    },
    async reunite() {
      await first.inspector.call('ACL', 'SETUSER', peers.user, 'on');
      await first.inspector.config('SET', 'requirepass', '');
    },
    async failOver() {
      const before = await Promise.all(sentinels.map(masterPortOf));
      await until('every Sentinel names another master', async () => {
        const now = await Promise.all(sentinels.map(masterPortOf));
        if (now.every((port, index) => port !== before[index])) return true;
        // A Sentinel refuses a failover while its data about the replicas is outdated, and aborts a failover when a step takes too long.
        if (now[0] === before[0]) {
          await sentinels[0]?.inspector.call('SENTINEL', 'FAILOVER', master).catch(() => {});
        }
        return false;
      });
    },
    async stop() {
      for (const { inspector } of [...servers, ...sentinels]) inspector.disconnect();
      for (const { child } of sentinels) await endProcess(child);
      await Promise.all([
        ...servers.map(({ server }) => server.stop()),
        ...relays.map((relay) => relay.stop()),
      ]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function masterPortOf({ inspector }: { readonly inspector: Redis }): Promise<string | undefined> {
  const address = await inspector.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', master);
  return (address as string[] | null)?.[1];
}

async function launchSentinel(
  file: string,
  {
    masterPort,
    sentinelLines,
    tls,
  }: { masterPort: number; sentinelLines: readonly string[]; tls: RedisTls | undefined },
) {
  const port = await freePort();
  const lines = [
    ...(tls ? ['port 0', `tls-port ${port}`, ...linesOf(tls.options)] : [`port ${port}`]),
    'bind 127.0.0.1',
    `sentinel monitor ${master} 127.0.0.1 ${masterPort} ${quorum}`,
    `sentinel auth-user ${master} ${peers.user}`,
    `sentinel auth-pass ${master} ${peers.password}`,
    `sentinel down-after-milliseconds ${master} 600000`,
    `sentinel failover-timeout ${master} 2000`,
    ...sentinelLines,
    '',
  ];
  await writeFile(file, lines.join('\n'));
  const child = spawn(await redisBinary(), [file, '--sentinel'], { stdio: 'ignore' });
  const url = `${tls ? 'rediss' : 'redis'}://127.0.0.1:${port}`;
  await waitUntilReady(url, tls);
  const inspector = inspect(url, tls);
  // By default a Sentinel queries the replicas every ten seconds, and announces itself to the other Sentinels every two seconds.
  await inspector.call(
    'SENTINEL',
    'DEBUG',
    'INFO-PERIOD',
    '100',
    'PUBLISH-PERIOD',
    '100',
    'ASK-PERIOD',
    '100',
  );
  return { port, child, inspector };
}

/** Converts options of a command line into the lines of a configuration file. */
function linesOf(options: readonly string[]): readonly string[] {
  return options.flatMap((option, index) =>
    index % 2 === 0 ? [`${option.slice(2)} ${options[index + 1]}`] : [],
  );
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}
