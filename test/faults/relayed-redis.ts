import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisPlace } from '../support/connect-redis.ts';
import { startCluster } from '../support/start-cluster.ts';
import { startRedis } from '../support/start-redis.ts';
import { startSentinel } from '../support/start-sentinel.ts';
import { startTcpRelay, type TcpRelay } from '../support/tcp-relay.ts';

export const formNames = ['one server', 'a Cluster', 'Sentinel'] as const;

export type FormName = (typeof formNames)[number];

/** Redis with a relay in front of each server that stores keys. */
export interface RelayedRedis {
  readonly place: RedisPlace;
  readonly relays: readonly TcpRelay[];
  stop(): Promise<void>;
}

export async function startRelayed(form: FormName): Promise<RelayedRedis> {
  if (form === 'a Cluster') {
    const { urls, relays, stop } = await startCluster({ hasReplicas: false, relayed: true });
    return { place: { cluster: urls }, relays, stop };
  }
  if (form === 'Sentinel') {
    const { name, hosts, relays, stop } = await startSentinel({ relayed: true });
    return { place: { sentinel: { name, hosts } }, relays, stop };
  }
  const server = await startRedis();
  const relay = await startTcpRelay(server.port);
  const stop = async () => void (await Promise.all([relay.stop(), server.stop()]));
  return { place: { url: `redis://127.0.0.1:${relay.port}` }, relays: [relay], stop };
}

export interface Disturbance {
  /** The number of times that the connections were cut. */
  readonly cuts: number;
}

/** Cuts the connections to each server occasionally, and delays their bytes, so that replies are late or lost. */
export function disturb(relays: readonly TcpRelay[]): { stop(): Promise<Disturbance> } {
  let isStopped = false;
  let cuts = 0;
  const all = relays.map(disturbOne);
  return {
    async stop() {
      isStopped = true;
      await Promise.all(all);
      return { cuts };
    },
  };

  async function disturbOne(relay: TcpRelay): Promise<void> {
    while (!isStopped) {
      await sleep(500 + Math.random() * 1_500);
      relay.delay({ toServerMs: Math.random() * 40, toClientMs: Math.random() * 90 });
      await sleep(Math.random() * 300);
      if (Math.random() < 0.3) {
        relay.cut();
        cuts += 1;
      }
      relay.delay({ toServerMs: 0, toClientMs: 0 });
    }
  }
}
