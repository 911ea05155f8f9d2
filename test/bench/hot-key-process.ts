/**
 * A process with its own limiter. The process decides requests of one key, and then sends its parent the number of admitted, refused and
 * banned requests.
 */
import { once } from 'node:events';
import { pino } from 'pino';
import { createLimiter } from '../../gateway/request/limit/limiter.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import type { Decided, FloodOptions } from './measure-hot-key.ts';

const options: FloodOptions = JSON.parse(process.argv[2] ?? '');
const { port, perDay, bansAfter, clients, warmUpSeconds, seconds } = options;
const limiter = createLimiter({
  redis: { cluster: [`redis://127.0.0.1:${port}`], prefix: 'hot', onFailure: 'local' },
  log: pino({ level: 'silent' }),
  nowMs: Date.now,
  planOf: () => undefined,
  // Eight processes on few cores wait for each other. This wait must not count as an outage of Redis.
  bounds: { ...defaultBounds, storeDeadlineMs: 10_000, storeSilenceMaxMs: 10_000 },
});
const limits = [{ window: 'day', max: perDay }] as const;
const key = { id: 'hot', plan: 'free', limits, disabled: false };
const bans = { after: bansAfter, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };

await limiter.decide(key, { bans }, { units: 1 });
// A process mostly compiles code in its first seconds.
await decideFor(warmUpSeconds);
process.send?.('warm');
await once(process, 'message');
process.send?.(await decideFor(seconds));
await limiter.close();
process.disconnect?.();

async function decideFor(seconds: number): Promise<Decided> {
  const decided = { admitted: 0, refused: 0, banned: 0 };
  const endMs = performance.now() + seconds * 1_000;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (performance.now() < endMs) {
        const { kind } = await limiter.decide(key, { bans }, { units: 1 });
        if (kind === 'admitted' || kind === 'refused' || kind === 'banned') decided[kind] += 1;
        else throw new Error(`decided without Redis: ${kind}`);
        // The loop must yield after a refusal from memory, so that the timers of the process run.
        if (kind !== 'admitted') await new Promise(setImmediate);
      }
    }),
  );
  return decided;
}
