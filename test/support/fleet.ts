import type { Redis } from 'ioredis';
import type { RedisPlace } from './connect-redis.ts';
import { fetchOnce } from './fetch-once.ts';
import { startGatewayHere } from './gateway-here.ts';
import {
  type GatewayProcess,
  type GatewayStart,
  type RunningGateway,
  startGateway,
  testConfig,
} from './gateway-process.ts';
import { inspect } from './inspect.ts';
import { type RedisServer, startRedis } from './start-redis.ts';
import { type StoreProcess, startStore, startStoreHere } from './store-process.ts';
import { startTcpRelay, type TcpRelay } from './tcp-relay.ts';

/** Several gateways with the same Redis and the same backend. */
export interface Fleet<Member extends RunningGateway = GatewayProcess> {
  readonly gateways: readonly Member[];
  /** The URL `http://127.0.0.1:port` of each gateway. */
  readonly origins: readonly string[];
  readonly redis: RedisServer;
  /** The relay between the gateways and Redis, if `relayed` is set. */
  readonly relay: TcpRelay | undefined;
  /** A direct connection to Redis, without the relay. */
  readonly inspector: Redis;
  readonly prefix: string;
  /** The common part of the gateways' configurations. */
  readonly config: Record<string, unknown>;
  /** Edits the configuration of every gateway. */
  editConfig(overrides: Record<string, unknown>): Promise<void>;
  stop(): Promise<void>;
}

export interface FleetOptions {
  /** One entry for each gateway process. */
  readonly starts: readonly FleetMember[];
  /** Fields of the configuration of all gateways, which replace fields of `testConfig`. */
  readonly config: Record<string, unknown>;
  /** Makes Redis require this password. */
  readonly redisPassword?: string;
  /** Connects the gateways to Redis through a relay, which can delay and throttle the connections. */
  readonly relayed?: boolean;
  /** Further files of the configuration. The name of each member is a file name. */
  readonly files?: Readonly<Record<string, unknown>>;
  /** A Redis for the gateways, in place of the fleet's own server. */
  readonly place?: RedisPlace;
}

interface FleetMember extends GatewayStart {
  readonly onFailure?: 'local' | 'refuse';
  /** Fields of this gateway's configuration, which replace fields of the common configuration. */
  readonly config?: Record<string, unknown>;
}

/** Starts a process for each gateway. */
export function startFleet(options: FleetOptions): Promise<Fleet> {
  return startMembers(startGateway, startStore, options);
}

/** Starts all gateways in the process of the test; see `startGatewayHere`. */
export function startFleetHere(options: FleetOptions): Promise<Fleet<RunningGateway>> {
  return startMembers(startGatewayHere, startStoreHere, options);
}

async function startMembers<Member extends RunningGateway>(
  startMember: (config: Record<string, unknown>, start: GatewayStart) => Promise<Member>,
  startBackend: () => Promise<StoreProcess>,
  { starts, config, redisPassword, relayed = false, place, files = {} }: FleetOptions,
): Promise<Fleet<Member>> {
  const [store, redis] = await Promise.all([startBackend(), startRedis()]);
  const inspector = inspect(redis.url);
  const relay = relayed ? await startTcpRelay(redis.port) : undefined;
  const redisUrl = new URL(redis.url);
  if (relay !== undefined) redisUrl.port = `${relay.port}`;
  if (redisPassword !== undefined) {
    await inspector.config('SET', 'requirepass', redisPassword);
    redisUrl.password = redisPassword;
  }
  const prefix = 'test';
  const shared = testConfig({ upstream: { url: store.url, health: '/healthz' }, ...config });
  const configOf = (
    { onFailure = 'local', config: own }: FleetMember,
    overrides: Record<string, unknown> = {},
  ) => ({
    ...shared,
    ...own,
    redis: { ...(place ?? { url: redisUrl.href }), prefix, onFailure },
    ...overrides,
  });
  const gateways = await Promise.all(
    starts.map((start) => startMember(configOf(start), { files, ...start })),
  );

  return {
    gateways,
    origins: gateways.map(originOf),
    redis,
    relay,
    inspector,
    prefix,
    config: shared,
    async editConfig(overrides) {
      await Promise.all(
        starts.map((start, index) => gateways[index]?.editConfig(configOf(start, overrides))),
      );
    },
    stop: () => stopAll(gateways, inspector, relay, redis, store),
  };
}

export function originOf({ port }: RunningGateway): string {
  return `http://127.0.0.1:${port}`;
}

/** The response of a gateway's `/readyz`. */
export async function readiness({ adminUrl }: RunningGateway) {
  const response = await fetchOnce(`${adminUrl}/readyz`);
  const text = await response.text();
  return { httpStatus: response.status, text, body: JSON.parse(text) as ReadinessBody };
}

interface ReadinessBody {
  readonly status: 'ok' | 'degraded' | 'unavailable';
  readonly reasons: readonly string[];
  readonly config: { readonly version: string; readonly lastError?: string };
  readonly upstreams: Readonly<
    Record<string, { readonly targets: readonly { readonly address: string; readonly healthy: boolean }[] }>
  >;
}

async function stopAll(
  gateways: readonly RunningGateway[],
  inspector: Redis,
  relay: TcpRelay | undefined,
  redis: RedisServer,
  store: StoreProcess,
): Promise<void> {
  inspector.disconnect();
  await Promise.all(gateways.map((gateway) => gateway.stop('SIGKILL')));
  await Promise.all([relay?.stop(), redis.stop(), store.stop()]);
}
