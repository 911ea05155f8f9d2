import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Adjustment } from '../../gateway/quota/adjust.ts';
import { scriptWithChapters } from '../../gateway/quota/calls/library.ts';
import { emptyQuotaState } from '../../gateway/quota/hash.ts';
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

    it('keeps the hash a second longer than a change needs it, and never shortens its expiry', async () => {
      const store = await subject.open(await freshLengths(subject));
      const bans = { after: 1, withinMs: 1_000, forMs: 1_000, maxMs: 3_600_000 };
      const { client } = subject;
      const script = (call: string) => scriptWithChapters(`${call}\nreturn nowMs`);
      const ofChange = (change: Adjustment, keptMs: number) => async (keyId: string) => {
        const changed = await store.adjust(keyId, change);
        return changed.kind === 'changed' && keptMs > 0 ? changed.nowMs + keptMs : 0;
      };
      const grant = { limits: limitsOf({ perDay: 5 }), untilMs: (await subject.nowMs()) + 7_200_000 };
      /** Each change returns the time until which the hash is needed, epoch ms; 0 if only its counts are needed. */
      const changes: Record<string, (keyId: string, day: number, key: string) => Promise<number>> = {
        lift: ofChange({ lift: bans }, bans.maxMs),
        reset: ofChange({ reset: bans }, bans.maxMs),
        grant: async (keyId) => ofChange({ grant }, 0)(keyId).then(() => grant.untilMs),
        ungrant: ofChange({ grant: 'none' }, 0),
        'a reset with a grant': (keyId) =>
          ofChange({ reset: bans, grant }, 0)(keyId).then(() => grant.untilMs),
        'units given back': (keyId, day) => ofChange({ giveBack: [['day', day, 1]] }, 0)(keyId),
        async 'a reported threshold'(keyId, index) {
          await store.confirmTold(keyId, { window: 'day', index, percent: 80, resetMs: 0 });
          return 0;
        },
        'a leak': async (_, __, key) =>
          Number(await client.eval(script('noteLeak(KEYS[1], 1, 60000)'), 1, key)) + 60_000,
        'a generation': async (_, __, key) =>
          Number(await client.eval(script('giveGeneration(KEYS[1], 60000)'), 1, key)) + 60_000,
        'a generation that is read': async (_, __, key) =>
          Number(await client.eval(script('readGeneration(KEYS[1], 60000)'), 1, key)) + 60_000,
        async 'a generation that is read again'(_, __, key) {
          await client.hset(key, 'changedMs', 5);
          return Number(await client.eval(script('readGeneration(KEYS[1], 60000)'), 1, key)) + 60_000;
        },
      };
      for (const [name, change] of Object.entries(changes)) {
        for (const leftMs of [10_000, 864_000_000]) {
          const call = callOf(limitsOf({ perDay: 9 }));
          const key = redisKeys.quota.name(subject.prefix, call.keyId);
          const { state } = await decide(store, { ...call, runs: oneRun(3) });
          await client.pexpire(key, leftMs);
          const before = await client.pexpiretime(key);
          const untilMs = await change(call.keyId, state.day, key);
          const after = await client.pexpiretime(key);
          expect([name, after]).toEqual([name, Math.max(before, untilMs + 1000)]);
        }
        const unused = callOf([]).keyId;
        const key = redisKeys.quota.name(subject.prefix, unused);
        const untilMs = await change(unused, 0, key);
        expect([name, await client.pexpiretime(key)]).toEqual([name, untilMs === 0 ? -2 : untilMs + 1000]);
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
      await store.adjust(call.keyId, { reset: bans });
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

  it('keeps the counts a second longer than a change needs them, and never shortens their expiry', async () => {
    let nowMs = 1_000_000_000;
    const store = createMemoryQuotaStore({ nowMs: () => nowMs, bounds: defaultBounds });
    const bans = { after: 1, withinMs: 1_000, forMs: 1_000, maxMs: 60_000 };
    const grant = { limits: limitsOf({ perDay: 5 }), untilMs: nowMs + 120_000 };
    const isKept = async (keyId: string) => {
      const read = await store.read([keyId]);
      return read.kind === 'read' && read.states[0] !== emptyQuotaState;
    };
    const changes: readonly (readonly [Adjustment, keptMs: number])[] = [
      [{ lift: bans }, 60_000],
      [{ reset: bans }, 60_000],
      [{ grant }, 120_000],
      [{ grant, lift: bans }, 120_000],
      [{ grant: 'none' }, 0],
      [{ giveBack: [['day', 11, 1]] }, -1_000],
    ];
    for (const [at, [change, keptMs]] of changes.entries()) {
      await store.adjust(`${at}`, change);
      await store.adjust(`${at}`, { grant: 'none', giveBack: [] });
      await decide(store, { ...callOf(limitsOf({ perDay: 9 })), keyId: `${at} busy`, runs: oneRun(3) });
      await store.adjust(`${at} busy`, change);
      const [beganMs, endMs] = [nowMs, nowMs + keptMs + 1_000];
      nowMs = endMs - 1;
      if (keptMs > 0) expect([change, await isKept(`${at}`)]).toEqual([change, true]);
      nowMs = endMs;
      expect([change, await isKept(`${at}`)]).toEqual([change, false]);
      nowMs = 12 * 86_400_000 + 999;
      expect([change, await isKept(`${at} busy`)]).toEqual([change, true]);
      nowMs = beganMs;
    }
  });
});
