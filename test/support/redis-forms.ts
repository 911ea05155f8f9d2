import { afterAll, beforeAll } from 'vitest';
import type { RedisPlace } from './connect-redis.ts';
import { redisUrl } from './redis.ts';
import { startCluster } from './start-cluster.ts';
import { startSentinel } from './start-sentinel.ts';

/** Redis as an operator may run it. What a suite shows, it shows on each of these. */
export interface RedisForm {
  readonly name: string;
  start(): Promise<{ readonly place: RedisPlace; stop(): Promise<void> }>;
}

export const redisForms: readonly RedisForm[] = [
  {
    name: 'one server',
    start: () => Promise.resolve({ place: { url: redisUrl() }, stop: () => Promise.resolve() }),
  },
  {
    name: 'a Cluster',
    async start() {
      const cluster = await startCluster();
      // One address is enough: its server knows the others.
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

/** Starts it for all tests of the file in which this is called; the result is where it is. */
export function startForm(form: RedisForm): () => RedisPlace {
  let started: Awaited<ReturnType<RedisForm['start']>> | undefined;
  beforeAll(async () => {
    started = await form.start();
  }, 60_000);
  afterAll(() => started?.stop());
  return () => {
    if (started === undefined) throw new Error('it is started before the first test');
    return started.place;
  };
}
