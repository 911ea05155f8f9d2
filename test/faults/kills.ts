import { setTimeout as sleep } from 'node:timers/promises';
import { originOf } from '../support/fleet.ts';
import {
  type GatewayProcess,
  makeCustomKey,
  makeKey,
  startGateway,
  testConfig,
} from '../support/gateway-process.ts';
import { inspect } from '../support/inspect.ts';
import { keysWithoutExpiry } from '../support/keys-without-expiry.ts';
import { startLoad } from '../support/load.ts';
import { startRedis } from '../support/start-redis.ts';
import { startStore } from '../support/store-process.ts';
import { patientStore } from '../support/tuning.ts';
import { until } from '../support/until.ts';

export interface Kills {
  readonly kills: number;
  /** Responses received before the gateways were killed. */
  readonly responses: number;
  readonly keys: number;
  readonly keysWithoutExpiry: readonly string[];
}

/**
 * Kills gateways repeatedly while clients send requests. Some keys reach their limits and are banned, and some requests have an unknown
 * key.
 */
export async function measureKills({ rounds }: { readonly rounds: number }): Promise<Kills> {
  const [store, redis] = await Promise.all([startStore(), startRedis()]);
  const inspector = inspect(redis.url);
  const keys = [
    makeCustomKey(1_000_000, 1_000_000),
    makeCustomKey(10, 100),
    ...Array.from({ length: 20 }, () => makeKey()),
  ];
  const config = testConfig({
    upstream: { url: store.url, health: '/healthz' },
    redis: { url: redis.url, prefix: 'test' },
    keys: keys.map(({ entry }) => entry),
    bans: { after: 20, within: '2s', for: '1s', max: '4s' },
  });
  const secrets = [...keys.map(({ secret }) => secret), 'unknown'];
  // The deadlines are long, because a gateway on a busy machine would otherwise decide without Redis and write nothing to it.
  const start = { tuning: { bounds: patientStore } };
  let responses = 0;

  async function killOne(gateway: GatewayProcess): Promise<void> {
    const load = startLoad({ origins: [originOf(gateway)], secrets, clients: 8 });
    await until('every key was used', () => load.responses.length > 2 * secrets.length);
    await sleep(Math.random() * 100);
    await gateway.stop('SIGKILL');
    responses += (await load.stop()).responses.length;
  }

  try {
    for (let round = 0; round < rounds; round += 1) {
      const gateways = await Promise.all([startGateway(config, start), startGateway(config, start)]);
      await Promise.all(gateways.map(killOne));
    }
    return {
      kills: rounds * 2,
      responses,
      keys: await inspector.dbsize(),
      keysWithoutExpiry: await keysWithoutExpiry(inspector),
    };
  } finally {
    inspector.disconnect();
    await Promise.all([redis.stop(), store.stop()]);
  }
}
