import type { RedisPlace } from './connect-redis.ts';
import { startCluster } from './start-cluster.ts';
import { startSentinel } from './start-sentinel.ts';

/** One of the forms of Redis that an operator may run. */
export interface RedisForm {
  readonly name: string;
  start(): Promise<{ readonly place: RedisPlace; stop(): Promise<void> }>;
}

/**
 * The forms with several servers: a Cluster of three masters, and one master with two replicas and three Sentinels.
 */
export const redisForms: readonly RedisForm[] = [
  {
    name: 'a Cluster',
    async start() {
      const cluster = await startCluster({ hasReplicas: false });
      // One address is sufficient, because its server lists the other servers.
      return { place: { cluster: cluster.urls.slice(0, 1) }, stop: cluster.stop };
    },
  },
  {
    name: 'Sentinel',
    async start() {
      const { name, hosts, stop } = await startSentinel();
      return { place: { sentinel: { name, hosts } }, stop };
    },
  },
];
