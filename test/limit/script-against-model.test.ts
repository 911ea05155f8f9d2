import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  decideQuota,
  emptyQuotaState,
  type QuotaState,
  type Unsent,
} from '../../gateway/limit/store/decide-quota.ts';
import { createRedisQuotaStore } from '../../gateway/limit/store/redis-quota-store.ts';
import { decide } from '../contract/quota-store-guarantees.ts';
import { type RedisSubject, redisSubject } from '../contract/redis-subject.ts';
import { freshPrefix } from '../support/redis.ts';
import * as arbitrary from './quota-arbitraries.ts';

let subject: RedisSubject;
beforeAll(async () => {
  subject = await redisSubject(createRedisQuotaStore);
});
afterAll(() => subject.close());

const step = fc.record({
  pauseMs: fc.constantFrom(0, 0, 0, 1, 3, 15),
  requests: fc.integer({ min: 0, max: 20 }),
  limits: arbitrary.limits,
  unsent: fc.option(arbitrary.unsent, { nil: undefined }),
});

it('the script in Redis and the pure function decide every sequence alike', async () => {
  // Windows of a few ms, so that a run crosses many of their boundaries on Redis's own clock.
  const lengths = { minuteMs: 10, dayMs: 40 };
  const store = await subject.open(lengths);
  await fc.assert(
    fc.asyncProperty(arbitrary.bans, fc.array(step, { maxLength: 25 }), async (bans, sequence) => {
      const keyId = freshPrefix();
      let model: Readonly<QuotaState> = emptyQuotaState;
      for (const { pauseMs, requests, limits, unsent } of sequence) {
        if (pauseMs > 0) await sleep(pauseMs);
        const call = { keyId, limits, bans, requests, unsent: unsent && toUnsent(unsent, model) };
        const actual = await decide(store, call);
        // A ban is forgotten with its hash, some time after its level has fallen back to the start.
        const forgotten = { ...model, bannedUntilMs: 0, banLevel: 0 };
        const isPast = actual.nowMs >= model.bannedUntilMs + bans.maxMs;
        const expected = (isPast ? [model, forgotten] : [model]).map((before) =>
          decideQuota(before, call, lengths, actual.nowMs),
        );
        expect(expected).toContainEqual(actual);
        model = actual.state;
      }
    }),
    { numRuns: 150, interruptAfterTimeLimit: 8_000 },
  );
});

function toUnsent(
  relative: typeof arbitrary.unsent extends fc.Arbitrary<infer T> ? T : never,
  { minute, day, bannedUntilMs }: Readonly<QuotaState>,
): Unsent {
  const { minutesBack, minuteUsed, daysBack, dayUsed, strikes, bannedForMs, banLevel } = relative;
  return {
    ...{ minute: minute - minutesBack, minuteUsed, day: day - daysBack, dayUsed },
    ...{ strikes, bannedUntilMs: Math.max(0, bannedUntilMs + bannedForMs), banLevel },
  };
}
