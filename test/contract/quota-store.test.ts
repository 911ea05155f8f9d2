import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scriptWithChapters } from '../../gateway/quota/calls/library.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import { createMemoryQuotaStore } from '../../gateway/request/limit/store/memory-quota-store.ts';
import type { QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import { defaultBounds } from '../../gateway/shared/timeouts-and-sizes.ts';
import { keysWithoutExpiry } from '../support/keys-without-expiry.ts';
import { limitsOf } from '../support/limits-of.ts';
import { oneRun } from '../support/one-run.ts';
import { allRedisForms, tagsOf } from '../support/start-form.ts';
import { groupGuarantees } from './group-guarantees.ts';
import {
  callOf,
  decide,
  freshLengths,
  guarantees,
  type Subject,
  sharedGuarantees,
} from './quota-store-guarantees.ts';
import { type RedisSubject, redisSubject } from './redis-subject.ts';
import { thresholdGuarantees } from './threshold-guarantees.ts';
import { trialGuarantees } from './trial-guarantees.ts';

for (const form of allRedisForms)
  describe(`the Redis store on ${form.name}`, { tags: tagsOf(form, ['a Cluster']) }, () => {
    let subject: RedisSubject;
    let stop = () => Promise.resolve();
    beforeAll(async () => {
      const started = await form.start();
      stop = started.stop;
      subject = await redisSubject(createRedisQuotaStore, started.place);
    });
    afterAll(async () => {
      const keys = await subject.keys();
      const withoutExpiry = await keysWithoutExpiry(subject.client, keys);
      await subject.close();
      await stop();
      expect(withoutExpiry).toEqual([]);
      expect(keys.length).toBeGreaterThan(5);
    });

    for (const [name, check] of Object.entries({
      ...guarantees,
      ...thresholdGuarantees,
      ...trialGuarantees,
      ...groupGuarantees,
      ...sharedGuarantees,
    })) {
      it.concurrent(name, () => check(subject));
    }

    it('keeps a grant in the key’s hash, which expires one second after the grant at the latest', async () => {
      const store = await subject.open({ ...(await freshLengths(subject)), minute: 20, day: 20 });
      const call = callOf(limitsOf({ perMinute: 3, perDay: 10 }));
      const key = `${subject.prefix}:{${call.keyId}}`;
      const untilMs = (await subject.nowMs()) + 600_000;
      const limits = limitsOf({ perMinute: 5, perDay: 50 });
      await store.adjust(call.keyId, { grant: { limits, untilMs } });
      expect(await subject.client.hgetall(key)).toEqual({ grant: `${untilMs} minute 5 day 50` });
      expect(await subject.client.pexpiretime(key)).toBe(untilMs + 1000);
      await decide(store, { ...call, runs: oneRun(1) });
      expect(await subject.client.pexpiretime(key)).toBe(untilMs + 1000);
      await store.adjust(call.keyId, { grant: { limits, fromMs: untilMs - 1, untilMs } });
      expect(await subject.client.hget(key, 'grant')).toBe(`${untilMs} minute 5 day 50 from ${untilMs - 1}`);
      await subject.client.hset(key, 'grant', '1 minute 5 day 50');
      await decide(store, { ...call, runs: oneRun(1) });
      expect(await subject.client.hexists(key, 'grant')).toBe(0);
    });

    it('keeps the hash a second longer than a mark needs it, and never shortens its expiry', async () => {
      const store = await subject.open(await freshLengths(subject));
      const { client } = subject;
      const keptMs = 60_000;
      const marked = (call: string) => async (key: string) =>
        Number(await client.eval(scriptWithChapters(`${call}\nreturn nowMs`), 1, key)) + keptMs;
      /** Each mark returns the time until which it is needed, epoch ms. */
      const marks: Record<string, (key: string, keyId: string, day: number) => Promise<number>> = {
        // The hash lives until the day ends.
        async 'a reported threshold'(_, keyId, index) {
          await store.confirmTold(keyId, { window: 'day', index, percent: 80, resetMs: 0 });
          return 0;
        },
        'a leak': marked(`noteLeak(KEYS[1], 1, ${keptMs})`),
        'a new generation': marked(`giveGeneration(KEYS[1], ${keptMs})`),
        'a first generation': marked(`readGeneration(KEYS[1], ${keptMs})`),
        async 'a stored generation'(key) {
          await client.hset(key, 'changedMs', 5);
          return marked(`readGeneration(KEYS[1], ${keptMs})`)(key);
        },
      };
      for (const [name, mark] of Object.entries(marks)) {
        for (const leftMs of [10_000, 864_000_000]) {
          const call = callOf(limitsOf({ perDay: 9 }));
          const key = redisKeys.quota.name(subject.prefix, call.keyId);
          const { state } = await decide(store, { ...call, runs: oneRun(3) });
          await client.pexpire(key, leftMs);
          const before = await client.pexpiretime(key);
          const neededUntilMs = await mark(key, call.keyId, state.day);
          const expiresMs = Math.max(before, neededUntilMs + 1000);
          expect([name, await client.pexpiretime(key)]).toEqual([name, expiresMs]);
        }
        const { keyId } = callOf([]);
        const unused = redisKeys.quota.name(subject.prefix, keyId);
        const neededUntilMs = await mark(unused, keyId, 0);
        const expiresMs = neededUntilMs === 0 ? -2 : neededUntilMs + 1000;
        expect([name, await client.pexpiretime(unused)]).toEqual([name, expiresMs]);
      }
    });

    it('keeps one readable hash per key, in one cluster slot, which expires a second after its last window', async () => {
      const lengths = await freshLengths(subject);
      const store = await subject.open(lengths);
      const call = { ...callOf(limitsOf({ perMinute: 2, perDay: 10 })), keyId: 'acme', runs: oneRun(3) };
      const { nowMs, state } = await decide(store, call);
      const key = `${subject.prefix}:{acme}`;
      expect(await subject.client.hgetall(key)).toEqual({
        ...{ minute: String(state.minute), minuteUsed: '2', day: String(state.day), dayUsed: '2' },
        ...{ strikes: '1', strikesFromMs: String(nowMs) },
      });
      expect(await subject.client.pexpiretime(key)).toBe((state.day + 1) * lengths.day + 1000);
    });

    it('keeps the counts of a trial beside the counts of the plan, at least as long as a ban of the trial', async () => {
      const store = await subject.open(await freshLengths(subject));
      const bans = { after: 1, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };
      const tried = { limits: limitsOf({ perDay: 9 }), trial: limitsOf({ perDay: 2 }) };
      const call = { ...callOf(tried.limits), ...tried, bans };
      const key = `${subject.prefix}:{${call.keyId}}`;
      await decide(store, { ...call, runs: oneRun(2) });
      const { nowMs } = await decide(store, { ...call, runs: oneRun(1) });
      const stored = await subject.client.hgetall(key);
      expect(stored).toMatchObject({ dayUsed: '3', 'trial:dayUsed': '2', 'trial:banLevel': '1' });
      expect(await subject.client.pexpiretime(key)).toBe(nowMs + bans.forMs + bans.maxMs + 1000);
      await store.adjust(call.keyId, { reset: true, bans });
      expect((await subject.client.hkeys(key)).toSorted()).toEqual(['liftedMs', 'resetMs']);
    });

    it('includes its earlier decisions when one call decides the same key again, for any length of the windows', async () => {
      const store = await subject.open({ ...(await freshLengths(subject)), minute: 1 });
      for (let at = 0; at < 500; at += 1) {
        const call = { ...callOf(limitsOf({ perMinute: 1 })), runs: oneRun(1) };
        const replies = await store.decide([call, call]);
        const windows = replies.map((reply) => {
          if (reply.kind !== 'decided') throw new Error(JSON.stringify(reply));
          return reply.outcome.admitted === 1 ? reply.outcome.state.minute : -reply.outcome.state.minute;
        });
        expect(windows[0]).not.toBe(windows[1]);
      }
    });

    it('counts exactly up to the largest limit that a header field can carry', async () => {
      const store = await subject.open(await freshLengths(subject));
      const limit = 999_999_999_999_999;
      const call = callOf(limitsOf({ perMinute: limit, perDay: limit }));
      await decide(store, { ...call, runs: oneRun(limit - 1) });
      const { admitted, refused, state } = await decide(store, { ...call, runs: oneRun(2) });
      expect([admitted, refused, state.minuteUsed]).toEqual([1, 1, limit]);
    });

    it('never returns to an earlier window when its clock is set back', async () => {
      const lengths = await freshLengths(subject);
      const store = await subject.open(lengths);
      const call = { ...callOf(limitsOf({ perMinute: 5, perDay: 10 })), runs: oneRun(1) };
      const { state } = await decide(store, call);
      const ahead = { minute: state.minute + 2, minuteUsed: 5, day: state.day + 1, dayUsed: 7 };
      await subject.client.hset(`${subject.prefix}:{${call.keyId}}`, ahead);
      const outcome = await decide(store, call);
      expect([outcome.refused, outcome.state.minute, outcome.state.day]).toEqual([
        1,
        ahead.minute,
        ahead.day,
      ]);
    });
  });

describe('the memory store', () => {
  const stores = new Map<string, QuotaStore>();
  /** Each process has one store in memory, so all clients with the same windows share one store. */
  const subject: Subject = {
    open(windowsMs) {
      const id = JSON.stringify(windowsMs);
      const store =
        stores.get(id) ??
        createMemoryQuotaStore({ nowMs: Date.now, bounds: { ...defaultBounds, windowsMs } });
      stores.set(id, store);
      return store;
    },
    nowMs: () => Promise.resolve(Date.now()),
  };
  for (const [name, check] of Object.entries({
    ...guarantees,
    ...thresholdGuarantees,
    ...trialGuarantees,
    ...groupGuarantees,
  })) {
    it.concurrent(name, () => check(subject));
  }
});
