import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { directoryOf } from '../support/directory-of.ts';
import { startFleet } from '../support/fleet.ts';
import { makeCustomKey } from '../support/gateway-process.ts';
import { countStatuses, type LoadOutcome, quantile, startLoad } from '../support/load.ts';
import type { FloodOrder, FloodOutcome } from './unknown-secrets-worker.ts';

export interface UnknownSecretsOptions {
  readonly perSecond: number;
  /** What is measured is measured so often, in turn, each time with so many good requests. */
  readonly rounds: number;
  readonly goodRequests: number;
  /** Each request of the flood comes from one of so many addresses. */
  readonly addresses: number;
}

export interface UnknownSecrets {
  readonly good: Record<number, number>;
  readonly failures: readonly string[];
  /** Those that were looked up. */
  readonly floods: readonly FloodOutcome[];
  /** Of the good requests of each round. */
  readonly p99Ms: {
    readonly alone: readonly number[];
    /** Beside the flood, which the gateway with the directory looks up, and the one without it does not. */
    readonly besideLookUps: readonly number[];
    readonly besideGuesses: readonly number[];
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
  const beside = async (origin: string, secret: string) => {
    const flood = startFlood({ origin, ...options });
    await sleep(1_000);
    const good = await goodLoad(origin, secret);
    return { good, flood: await flood.stop() };
  };
  const p99Ms = { alone: [] as number[], besideLookUps: [] as number[], besideGuesses: [] as number[] };
  const good: LoadOutcome[] = [];
  const floods: FloodOutcome[] = [];
  try {
    // The first requests of a process are slow, those of either kind.
    await beside(looking, issued);
    await beside(guessing, configured.secret);
    for (let round = 0; round < options.rounds; round++) {
      const alone = await goodLoad(looking, issued);
      const lookUps = await beside(looking, issued);
      const guesses = await beside(guessing, configured.secret);
      p99Ms.alone.push(quantile(alone.responses, 0.99));
      p99Ms.besideLookUps.push(quantile(lookUps.good.responses, 0.99));
      p99Ms.besideGuesses.push(quantile(guesses.good.responses, 0.99));
      good.push(alone, lookUps.good, guesses.good);
      floods.push(lookUps.flood);
    }
    return {
      good: countStatuses(good.flatMap(({ responses }) => responses)),
      failures: [...good, ...floods].flatMap(({ failures }) => failures),
      floods,
      p99Ms,
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
