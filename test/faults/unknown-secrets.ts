import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { directoryOf } from '../support/directory-of.ts';
import { startFleet } from '../support/fleet.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { countStatuses, quantile, startLoad } from '../support/load.ts';
import type { FloodOrder, FloodOutcome } from './unknown-secrets-worker.ts';

export interface UnknownSecretsOptions {
  readonly perSecond: number;
  readonly goodRequests: number;
  /** Each request of the flood comes from one of so many addresses. */
  readonly addresses: number;
}

export interface UnknownSecrets {
  readonly good: Record<number, number>;
  readonly failures: readonly string[];
  readonly flood: Record<number, number>;
  readonly floodPerSecond: number;
  readonly p99Ms: {
    readonly alone: number;
    /** Beside the flood, which the gateway with the directory looks up, and the one without it does not. */
    readonly besideLookUps: number;
    readonly besideGuesses: number;
  };
}

/** Keys of the directory in use, beside a flood of secrets that nobody has, each another one. */
export async function measureUnknownSecrets(options: UnknownSecretsOptions): Promise<UnknownSecrets> {
  const { goodRequests } = options;
  const configured = makeCustomKey(1_000_000_000, 1_000_000_000);
  const fleet = await startFleet({
    starts: [{ config: { keys: { directory: true } } }, { config: { keys: [configured.entry] } }],
    config: { trustedProxies: ['127.0.0.1'], addressBucket: { perMinute: 30 } },
  });
  const directory = await directoryOf({ url: fleet.redis.url, prefix: fleet.prefix });
  const limits = [{ window: 'minute' as const, max: 1_000_000_000 }];
  const issued = 'a secret that was issued';
  await directory.issue('issued', [issued], { plan: 'enterprise', limits });
  const [looking, guessing] = fleet.origins;
  if (looking === undefined || guessing === undefined) throw new Error('two gateways were started');
  const goodLoad = (origin: string, secret: string) =>
    startLoad({ origins: [origin], secrets: [secret], clients: 8, pauseMs: 10, requestsMax: goodRequests })
      .done;
  try {
    // The first requests of a process are slow.
    await goodLoad(looking, issued);
    await goodLoad(guessing, configured.secret);
    const alone = await goodLoad(looking, issued);
    const flood = startFlood({ origin: looking, ...options });
    await sleep(1_000);
    const besideLookUps = await goodLoad(looking, issued);
    const ended = await flood.stop();
    const guesses = startFlood({ origin: guessing, ...options });
    await sleep(1_000);
    const besideGuesses = await goodLoad(guessing, configured.secret);
    await guesses.stop();
    const all = [alone, besideLookUps, besideGuesses];
    return {
      good: countStatuses(all.flatMap(({ responses }) => responses)),
      failures: [...all.flatMap(({ failures }) => failures), ...ended.failures],
      flood: ended.statuses,
      floodPerSecond: ended.perSecond,
      p99Ms: {
        alone: quantile(alone.responses, 0.99),
        besideLookUps: quantile(besideLookUps.responses, 0.99),
        besideGuesses: quantile(besideGuesses.responses, 0.99),
      },
    };
  } finally {
    directory.close();
    await fleet.stop();
  }
}

/** In a thread of its own, so that it does not delay the good traffic here. */
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
