/** A process with one limiter of its own. The process decides `requests` requests of one key and sends the outcomes to its parent. */
import { pino } from 'pino';
import { createLimiter } from '../../../gateway/request/limit/limiter.ts';
import type { WindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';

interface Options {
  readonly url: string;
  readonly prefix: string;
  readonly keyId: string;
  readonly requests: number;
  readonly perMinute: number;
  /** The error of this process's clock. */
  readonly skewMs: number;
  readonly windowsMs: WindowsMs;
}

const options: Options = JSON.parse(process.argv[2] ?? '');
const { url, prefix, keyId, requests, perMinute, skewMs, windowsMs } = options;

const limiter = createLimiter({
  redis: { url, prefix, onFailure: 'local' },
  log: pino(process.stderr),
  nowMs: () => Date.now() + skewMs,
  planOf: () => undefined,
  bounds: tunedBounds({ ...patientStore, windowsMs }),
});
const key = { id: keyId, plan: 'free', limits: limitsOf({ perMinute, perDay: 1_000_000 }), disabled: false };
const bans = { after: 1_000_000, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };

const counts: Record<string, number> = {};
const clients = Array.from({ length: 20 }, async () => {
  for (let index = 0; index < requests / 20; index++) {
    const { kind } = await limiter.decide(key, bans, 1);
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
});
await Promise.all(clients);
process.send?.(counts);
await limiter.close();
process.disconnect?.();
