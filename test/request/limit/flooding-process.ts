/**
 * A process with one limiter of its own. The process decides `requests` requests of each key, and sends the outcomes to
 * its parent process.
 */
import { pino } from 'pino';
import { createLimiter } from '../../../gateway/request/limit/limiter.ts';
import type { WindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import { groupNames, limitsOn } from '../../../gateway/shared/limits.ts';
import type { RedisPlace } from '../../support/connect-redis.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';

export interface FloodOptions {
  readonly place: RedisPlace;
  readonly prefix: string;
  readonly keys: readonly FloodedKey[];
  /** The number of requests of each key. */
  readonly requests: number;
  /** The difference between this process's clock and the right time. */
  readonly skewMs: number;
  readonly windowsMs: WindowsMs;
}

export interface FloodedKey {
  readonly id: string;
  readonly perMinute: number;
  /** Each request has one of these costs, chosen at random. */
  readonly costs: readonly number[];
  /** The groups of the key. Each request has one of their operations, or another operation, chosen at random. */
  readonly groups?: Readonly<Record<string, { operations: readonly string[]; perMinute: number }>>;
}

/** The outcomes of the requests of one key. */
export interface Flooded {
  admitted: number;
  refused: number;
  /** The units of the admitted requests. */
  units: number;
  /** The units of the admitted requests in each group. */
  unitsIn: Record<string, number>;
  /** The number of refused requests for which the decision stated enough remaining units. */
  refusedWithRoom: number;
}

const options: FloodOptions = JSON.parse(process.argv[2] ?? '');
const { place, prefix, keys, requests, skewMs, windowsMs } = options;

const limiter = createLimiter({
  redis: { ...place, prefix, onFailure: 'local' },
  log: pino(process.stderr),
  nowMs: () => Date.now() + skewMs,
  planOf: () => undefined,
  bounds: tunedBounds({ ...patientStore, windowsMs }),
});
const bans = { after: 1_000_000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
const clientsPerKey = 20;

const flooded = await Promise.all(
  keys.map(async ({ id, perMinute, costs, groups = {} }) => {
    const limits = limitsOf({ perMinute, perDay: 1_000_000, groups });
    const key = { id, plan: 'free', limits, disabled: false };
    const counts: Flooded = { admitted: 0, refused: 0, units: 0, unitsIn: {}, refusedWithRoom: 0 };
    const operations = [undefined, ...Object.values(groups).flatMap((group) => group.operations)];
    const clients = Array.from({ length: clientsPerKey }, async () => {
      for (let index = 0; index < requests / clientsPerKey; index++) {
        const units = costs[Math.floor(Math.random() * costs.length)] ?? 1;
        const operation = operations[Math.floor(Math.random() * operations.length)];
        const decision = await limiter.decide(key, { bans }, { units, operation });
        if (decision.kind === 'admitted') {
          counts.admitted += 1;
          counts.units += units;
          for (const name of groupNames(limitsOn(limits, operation)))
            counts.unitsIn[name] = (counts.unitsIn[name] ?? 0) + units;
        } else if (decision.kind === 'refused') {
          counts.refused += 1;
          const hasRoom = decision.rateLimit.windows.every(({ remaining }) => remaining >= units);
          if (hasRoom) counts.refusedWithRoom += 1;
        }
      }
    });
    await Promise.all(clients);
    return counts;
  }),
);
process.send?.(flooded);
await limiter.close();
process.disconnect?.();
