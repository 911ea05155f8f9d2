import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { directoryOf } from '../support/directory-of.ts';
import { startFleet } from '../support/fleet.ts';
import { countStatuses, startLoad } from '../support/load.ts';
import type { FloodOrder, FloodOutcome } from './unknown-secrets-worker.ts';

export interface UnknownSecretsOptions {
  readonly perSecond: number;
  readonly goodRequests: number;
  /** The number of client addresses in the flood. */
  readonly addresses: number;
}

export interface UnknownSecrets {
  readonly good: Record<number, number>;
  readonly flood: FloodOutcome;
  readonly failures: readonly string[];
}

/**
 * Measures a key of the directory during a flood of different unknown secrets. This measurement omits the key's p99, because the gateway
 * shares its CPU with other processes. The benchmark, in which the gateway has its own CPU, measures the p99.
 */
export async function measureUnknownSecrets(options: UnknownSecretsOptions): Promise<UnknownSecrets> {
  const fleet = await startFleet({
    starts: [{ config: { keys: { directory: true } } }],
    config: { trustedProxies: ['127.0.0.1'], addressBucket: { perMinute: 60 } },
  });
  const directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
  try {
    const secret = 'a secret that was issued';
    const limits = { perMinute: 1_000_000_000 };
    await directory.issue('issued', [secret], { plan: 'enterprise', limits });
    const { origins } = fleet;
    const flooding = startFlood({ origin: origins[0] ?? '', ...options });
    await sleep(1_000);
    const load = startLoad({
      origins,
      secrets: [secret],
      clients: 8,
      pauseMs: 10,
      requestsMax: options.goodRequests,
    });
    const good = await load.done;
    const flood = await flooding.stop();
    return {
      good: countStatuses(good.responses),
      flood,
      failures: [...good.failures, ...flood.failures],
    };
  } finally {
    directory.close();
    await fleet.stop();
  }
}

/** The flood runs in its own thread, so that it does not delay the other clients in this thread. */
function startFlood(order: FloodOrder): { stop(): Promise<FloodOutcome> } {
  const worker = new Worker(new URL('unknown-secrets-worker.ts', import.meta.url), { workerData: order });
  const outcome = new Promise<FloodOutcome>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
  return {
    async stop() {
      worker.postMessage('stop');
      const found = await outcome;
      await worker.terminate();
      return found;
    },
  };
}
