import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { QuotaCall, QuotaOutcome } from '../../gateway/quota/decide-key.ts';
import { emptyQuotaState, type QuotaState } from '../../gateway/quota/hash.ts';
import type { Unsent } from '../../gateway/quota/unsent.ts';
import { redisKeys } from '../../gateway/redis/redis-keys.ts';
import type { QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import { calendarMonth, noCounts, type WindowsMs } from '../../gateway/shared/calendar-windows.ts';
import type { Grant } from '../../gateway/shared/model.ts';
import { freshWindows } from '../support/fresh-windows.ts';
import { limitsOf } from '../support/limits-of.ts';
import { oneRun } from '../support/one-run.ts';
import { freshPrefix } from '../support/redis.ts';
import type { RedisSubject } from './redis-subject.ts';

/**
 * The contract of a QuotaStore, as named checks. `quota-store.test.ts` runs the checks on the real stores. `broken-limiters.test.ts` runs
 * the checks on broken stores, which must fail a check.
 */
export const guarantees: Readonly<Record<string, (subject: Subject) => Promise<void>>> = {
  async 'many simultaneous requests of several clients are admitted up to exactly the limit'(subject) {
    const lengths = await freshLengths(subject);
    const stores = await Promise.all([1, 2, 3].map(() => subject.open(lengths)));
    const call = callOf(limitsOf({ perMinute: 50, perDay: 1000 }));
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, (_, index) => decide(stores[index % 3], { ...call, runs: oneRun(1) })),
    );
    expect(sum(outcomes, 'admitted')).toBe(50);
    const last = await decide(stores[0], call);
    expect([last.state.minuteUsed, last.state.dayUsed]).toEqual([50, 50]);
  },

  async 'requests of a key in progress on all processes are at most the concurrency limit, and a place is free when they end'(
    subject,
  ) {
    const lengths = await freshLengths(subject);
    const [one, other] = await Promise.all([1, 2].map(() => subject.open(lengths)));
    const call = callOf(limitsOf({ perMinute: 50, perDay: 1000 }));
    const ask = (store: QuotaStore | undefined, process: string, active: number, requests: number) =>
      decide(store, {
        ...call,
        runs: oneRun(requests),
        concurrency: { max: 4, process, active, leaseMs: 60_000 },
      });
    expect(await ask(one, 'one', 0, 3)).toMatchObject({ admitted: 3, crowded: 0 });
    expect(await ask(other, 'other', 0, 3)).toMatchObject({ admitted: 1, crowded: 2, refused: 0, banned: 0 });
    expect(await ask(one, 'one', 3, 1)).toMatchObject({ admitted: 0, crowded: 1 });
    await ask(one, 'one', 0, 0);
    const last = await ask(other, 'other', 1, 4);
    expect(last).toMatchObject({ admitted: 3, crowded: 1 });
    expect([last.state.minuteUsed, last.state.strikes]).toEqual([7, 0]);
  },

  async 'the requests of a process that does not renew its lease stop counting when the lease expires'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 50, perDay: 1000 }));
    const ask = (process: string, leaseMs: number) =>
      decide(store, { ...call, runs: oneRun(2), concurrency: { max: 2, process, active: 0, leaseMs } });
    const { admitted, nowMs } = await ask('killed', 150);
    expect(admitted).toBe(2);
    const early = await ask('other', 60_000);
    if (early.nowMs < nowMs + 150) expect(early.admitted).toBe(0);
    while ((await subject.nowMs()) < nowMs + 150) await sleep(5);
    expect((await ask('other', 60_000)).admitted).toBe(2);
  },

  async 'the day limit holds as exactly as the minute limit'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 1000, perDay: 30 }));
    const outcomes = await Promise.all(
      Array.from({ length: 90 }, () => decide(store, { ...call, runs: oneRun(1) })),
    );
    expect(sum(outcomes, 'admitted')).toBe(30);
  },

  async 'a request refused by the minute is charged in neither window'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 2, perDay: 10 }));
    for (let index = 0; index < 6; index++) await decide(store, { ...call, runs: oneRun(1) });
    const { state } = await decide(store, call);
    expect([state.minuteUsed, state.dayUsed]).toEqual([2, 2]);
  },

  async 'a request refused by the day is charged in neither window'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 10, perDay: 2 }));
    for (let index = 0; index < 6; index++) await decide(store, { ...call, runs: oneRun(1) });
    const { state } = await decide(store, call);
    expect([state.minuteUsed, state.dayUsed]).toEqual([2, 2]);
  },

  async 'a call of n requests admits as many as there is room for'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 5, perDay: 100 }));
    const first = await decide(store, { ...call, runs: oneRun(3) });
    const second = await decide(store, { ...call, runs: oneRun(4) });
    expect([first.admitted, first.refused, second.admitted, second.refused]).toEqual([3, 0, 2, 2]);
  },

  async 'any list of windows is charged as one: in all of them or in none'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const rest = { perMinute: 9, perHour: 9, perDay: 9, perMonth: 9 };
    for (const spent of ['perSecond', ...Object.keys(rest)]) {
      const call = callOf(limitsOf({ perSecond: 9, ...rest, [spent]: 3 }));
      const first = await decide(store, { ...call, runs: oneRun(5) });
      expect([spent, first.admitted, first.refused]).toEqual([spent, 3, 2]);
      expect([spent, ...usedOf(first.state)]).toEqual([spent, 3, 3, 3, 3, 3]);
      const second = await decide(store, { ...call, runs: oneRun(1) });
      expect([spent, second.refused, ...usedOf(second.state)]).toEqual([spent, 1, 3, 3, 3, 3, 3]);
    }
  },

  async 'a month is a month of the UTC calendar'(subject) {
    const windowsMs = { ...(await freshLengths(subject)), month: calendarMonth };
    const store = await subject.open(windowsMs);
    const { nowMs, state } = await decide(store, { ...callOf(limitsOf({ perMonth: 3 })), runs: oneRun(4) });
    const now = new Date(nowMs);
    expect([state.month, state.monthUsed]).toEqual([
      now.getUTCFullYear() * 12 + now.getUTCMonth() - 1970 * 12,
      3,
    ]);
  },

  async 'a request is charged what it costs, in all windows or in none'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 12, perDay: 100 }));
    for (const [requests, units, admitted, used] of [
      [2, 5, 2, 10],
      [2, 5, 0, 10],
      [1, 3, 0, 10],
      [3, 2, 1, 12],
      [1, 1, 0, 12],
    ] as const) {
      const outcome = await decide(store, { ...call, runs: oneRun(requests, units) });
      expect([outcome.admitted, outcome.refused]).toEqual([admitted, requests - admitted]);
      expect([outcome.state.minuteUsed, outcome.state.dayUsed]).toEqual([used, used]);
    }
  },

  async 'units that do not suffice for one request are room for a cheaper request'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 12, perDay: 100 }));
    const costs = [5, 1, 5, 2, 5, 1];
    const replies = await store.decide(costs.map((units) => ({ ...call, runs: oneRun(1, units) })));
    const admitted = replies.map((reply) => reply.kind === 'decided' && reply.outcome.admitted);
    expect(admitted).toEqual([1, 1, 1, 0, 0, 1]);
    expect((await decide(store, { ...call, runs: [] })).state.minuteUsed).toBe(12);
    // This single call contains the same requests, and after them two requests with cost 0.
    const runs = [...costs.flatMap((units) => oneRun(1, units)), ...oneRun(2, 0)];
    const together = await decide(store, { ...call, keyId: freshPrefix(), runs });
    expect(together).toMatchObject({ admitted: 6, refused: 2, admittedOf: [1, 1, 1, 0, 0, 1, 2] });
    expect([together.state.minuteUsed, together.state.dayUsed]).toEqual([12, 12]);
  },

  async 'a free request is refused only by a ban, and by no window'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 2, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(limitsOf({ perMinute: 3, perDay: 100 })), bans };
    await decide(store, { ...call, runs: oneRun(4) });
    const lowered = { ...call, limits: limitsOf({ perMinute: 2, perDay: 100 }) };
    const free = await decide(store, { ...lowered, runs: oneRun(3, 0) });
    expect([free.admitted, free.state.minuteUsed, free.state.strikes]).toEqual([3, 3, 1]);
    expect((await decide(store, { ...call, runs: oneRun(1, 9) })).banned).toBe(1);
    expect((await decide(store, { ...call, runs: oneRun(2, 0) })).banned).toBe(2);
  },

  async 'a refusal is one strike, whatever the request costs'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 3, perDay: 100 }));
    expect((await decide(store, { ...call, runs: oneRun(2, 50) })).state.strikes).toBe(2);
  },

  async 'used requests stay counted when the list of windows is edited and edited back'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const before = callOf(limitsOf({ perMinute: 9, perDay: 5 }));
    await decide(store, { ...before, runs: oneRun(4) });
    const edited = { ...before, limits: limitsOf({ perMinute: 9, perHour: 2 }) };
    const inBetween = await decide(store, { ...edited, runs: oneRun(3) });
    expect([inBetween.admitted, inBetween.refused, inBetween.state.minuteUsed]).toEqual([2, 1, 6]);
    const after = await decide(store, { ...before, runs: oneRun(3) });
    expect([after.admitted, after.state.minuteUsed, after.state.dayUsed]).toEqual([1, 7, 5]);
  },

  async 'used requests stay counted when a limit changes during a window'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 5, perDay: 100 }));
    await decide(store, { ...call, runs: oneRun(5) });
    const lowered = { ...call, limits: limitsOf({ perMinute: 3, perDay: 100 }), runs: oneRun(1) };
    const raised = { ...call, limits: limitsOf({ perMinute: 7, perDay: 100 }), runs: oneRun(5) };
    expect((await decide(store, lowered)).refused).toBe(1);
    expect((await decide(store, raised)).admitted).toBe(2);
  },

  async 'a new minute begins with its full limit while the day goes on'(subject) {
    const minuteMs = 1_000;
    const store = await subject.open({ ...(await freshLengths(subject)), minute: minuteMs });
    const call = callOf(limitsOf({ perMinute: 3, perDay: 100 }));
    const { state } = await decide(store, { ...call, runs: oneRun(3) });
    await waitUntil(subject, (state.minute + 1) * minuteMs);
    const next = await decide(store, { ...call, runs: oneRun(4) });
    expect([next.admitted, next.state.minuteUsed, next.state.dayUsed]).toEqual([3, 3, 6]);
  },

  async 'all processes count in the same window, whatever their own clocks say'(subject) {
    const minuteMs = 60_000;
    const windowsMs = { ...(await freshLengths(subject)), minute: minuteMs };
    const behind = await subject.open(windowsMs, -90_000);
    const ahead = await subject.open(windowsMs, 90_000);
    const call = callOf(limitsOf({ perMinute: 1000, perDay: 1000 }));
    const first = await decide(behind, { ...call, runs: oneRun(1) });
    const second = await decide(ahead, { ...call, runs: oneRun(1) });
    const minutesBetween = Math.floor(second.nowMs / minuteMs) - Math.floor(first.nowMs / minuteMs);
    expect(second.state.minute - first.state.minute).toBe(minutesBetween);
    expect(Math.abs(second.nowMs - first.nowMs)).toBeLessThan(60_000);
  },

  async 'the refusal that reaches the threshold bans, and requests during a ban are not counted'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 5, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(limitsOf({ perMinute: 2, perDay: 100 })), bans };
    const first = await decide(store, { ...call, runs: oneRun(10) });
    expect([first.admitted, first.refused, first.banned]).toEqual([2, 4, 4]);
    expect(first.state.bannedUntilMs).toBe(first.nowMs + 60_000);
    const second = await decide(store, { ...call, runs: oneRun(7) });
    expect([second.banned, second.state.strikes, second.state.banLevel]).toEqual([7, 0, 1]);
    expect(second.state.bannedUntilMs).toBe(first.state.bannedUntilMs);
  },

  async 'a ban ends at the announced instant, the next ban is twice as long, and after max without a ban the next ban has the first length again'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 1, withinMs: 60_000, forMs: 200, maxMs: 600 };
    // On a busy machine, a request may be sent so late that the next ban has the shortest length again. In this case, the check runs again
    // with another key.
    for (let isInTime = false; !isInTime; ) {
      const call = { ...callOf(limitsOf({ perMinute: 1, perDay: 100 })), bans, runs: oneRun(1) };
      await decide(store, call);
      const lengthsMs: number[] = [];
      let endMs = Number.POSITIVE_INFINITY;
      isInTime = true;
      for (const pauseMs of [0, 0, 0, 650]) {
        const { nowMs, state } = await decide(store, call);
        isInTime &&= nowMs < endMs + bans.maxMs;
        endMs = state.bannedUntilMs;
        lengthsMs.push(endMs - nowMs);
        await waitUntil(subject, endMs + pauseMs);
      }
      const afterPause = await decide(store, call);
      lengthsMs.push(afterPause.state.bannedUntilMs - afterPause.nowMs);
      if (isInTime) expect(lengthsMs).toEqual([200, 400, 600, 600, 200]);
    }
  },

  async 'requests that a process counted alone are added to their own windows, and to no other window'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 10, perDay: 100 }));
    const { state } = await decide(store, { ...call, runs: oneRun(2) });
    const alone: Unsent = {
      ...nothingUnsent,
      minute: state.minute,
      minuteUsed: 3,
      day: state.day - 1,
      dayUsed: 3,
    };
    const merged = await decide(store, { ...call, runs: oneRun(9), unsent: alone });
    expect([merged.admitted, merged.state.minuteUsed, merged.state.dayUsed]).toEqual([5, 10, 7]);
  },

  async 'a ban and strikes that are written back never lower the values of the store'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 5, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(limitsOf({ perMinute: 1, perDay: 100 })), bans };
    await decide(store, { ...call, runs: oneRun(3) });
    const struck = await decide(store, { ...call, unsent: { ...nothingUnsent, strikes: 2 } });
    expect([struck.state.strikes, struck.state.bannedUntilMs]).toEqual([4, 0]);
    const bannedUntilMs = struck.nowMs + 30_000;
    const banned = await decide(store, { ...call, unsent: { ...nothingUnsent, bannedUntilMs, banLevel: 2 } });
    expect([banned.state.bannedUntilMs, banned.state.banLevel]).toEqual([bannedUntilMs, 2]);
    const older = { ...nothingUnsent, bannedUntilMs: bannedUntilMs - 5_000, banLevel: 1 };
    const kept = await decide(store, { ...call, runs: oneRun(1), unsent: older });
    expect([kept.banned, kept.state.bannedUntilMs, kept.state.banLevel]).toEqual([1, bannedUntilMs, 2]);
  },

  async 'reported refusals that reach the threshold ban before the requests of the same call'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 5, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(limitsOf({ perMinute: 1, perDay: 100 })), bans };
    await decide(store, { ...call, runs: oneRun(1) });
    const outcome = await decide(store, {
      ...call,
      runs: oneRun(2),
      unsent: { ...nothingUnsent, strikes: 5 },
    });
    expect([outcome.banned, outcome.state.strikes, outcome.state.banLevel]).toEqual([2, 0, 1]);
  },

  async 'reading counts charges nothing, and an unknown key has none'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 2, perDay: 100 }));
    const { state } = await decide(store, { ...call, runs: oneRun(3) });
    for (let again = 0; again < 2; again++) {
      const read = await store.read([call.keyId, 'nobody']);
      if (read.kind !== 'read') throw new Error(read.reason);
      expect(read.states).toEqual([state, emptyQuotaState]);
      expect(Math.abs(read.nowMs - (await subject.nowMs()))).toBeLessThan(20_000);
    }
  },

  async 'after a ban is lifted requests are admitted at once, and the next ban has the first length again'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 2, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(limitsOf({ perMinute: 3, perDay: 100 })), bans };
    const raised = { ...call, limits: limitsOf({ perMinute: 5, perDay: 100 }) };
    expect((await decide(store, { ...call, runs: oneRun(5) })).state.banLevel).toBe(1);
    expect((await decide(store, { ...raised, runs: oneRun(1) })).banned).toBe(1);
    const lifted = await store.adjust(call.keyId, { lift: true, bans });
    expect(lifted).toMatchObject({
      kind: 'changed',
      state: { bannedUntilMs: 0, banLevel: 0, minuteUsed: 3 },
    });
    const after = await decide(store, { ...raised, runs: oneRun(4) });
    expect([after.admitted, after.refused, after.banned]).toEqual([2, 1, 1]);
    expect(after.state.bannedUntilMs - after.nowMs).toBe(60_000);
  },

  async 'a lifted ban is not restored by a ban or strikes that a process counted alone before'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 5, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(limitsOf({ perMinute: 10, perDay: 100 })), bans };
    const { state } = await decide(store, { ...call, runs: oneRun(1) });
    const changed = await store.adjust(call.keyId, { lift: true, bans });
    if (changed.kind !== 'changed') throw new Error(changed.reason);
    const collected = {
      ...nothingUnsent,
      ...{ minute: state.minute, minuteUsed: 2, day: state.day, dayUsed: 2 },
      ...{ strikes: 9, bannedUntilMs: changed.nowMs + 60_000, banLevel: 1 },
    };
    const late = await decide(store, { ...call, runs: oneRun(1), unsent: collected });
    // The admitted request is still charged.
    expect([late.admitted, late.state.strikes, late.state.minuteUsed]).toEqual([1, 0, 4]);
    const { liftedMs } = late.state;
    const newer = { ...collected, liftedMs };
    expect((await decide(store, { ...call, runs: oneRun(1), unsent: newer })).banned).toBe(1);
  },

  async 'a reset clears all counts, including those that a process counted alone before'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 3, perDay: 3 }));
    const { state } = await decide(store, { ...call, runs: oneRun(4) });
    const collected = { ...nothingUnsent, ...{ minute: state.minute, minuteUsed: 2, strikes: 3 } };
    await store.adjust(call.keyId, { reset: true, bans: call.bans });
    const after = await decide(store, { ...call, runs: oneRun(2), unsent: collected });
    expect([after.admitted, after.state.minuteUsed, after.state.dayUsed]).toEqual([2, 2, 2]);
    expect(after.state.strikes).toBe(0);
  },

  async 'requests under a grant are charged to the windows as before, and stay counted after the grant'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 3, perDay: 100 }));
    const grant = await grantOf(subject, { perMinute: 5 });
    expect((await decide(store, { ...call, runs: oneRun(4) })).refused).toBe(1);
    expect(await store.adjust(call.keyId, { grant })).toMatchObject({ state: { grant, minuteUsed: 3 } });
    const under = await decide(store, { ...call, runs: oneRun(4) });
    expect([under.admitted, under.refused]).toEqual([2, 2]);
    expect([under.state.minuteUsed, under.state.dayUsed, under.state.grant]).toEqual([5, 5, grant]);
    expect(await store.read([call.keyId])).toMatchObject({ states: [{ grant }] });
    await store.adjust(call.keyId, { grant: 'none' });
    const raised = { ...call, limits: limitsOf({ perMinute: 6, perDay: 100 }) };
    const after = await decide(store, { ...raised, runs: oneRun(4) });
    expect([after.admitted, after.state.minuteUsed, after.state.grant]).toEqual([1, 6, undefined]);
  },

  async 'a grant may lower a limit, and a later grant replaces it as a whole'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 5, perDay: 100 }));
    await store.adjust(call.keyId, { grant: await grantOf(subject, { perMinute: 2, perDay: 2 }) });
    expect((await decide(store, { ...call, runs: oneRun(9) })).admitted).toBe(2);
    await store.adjust(call.keyId, { grant: await grantOf(subject, { perDay: 200 }) });
    const { admitted, state } = await decide(store, { ...call, runs: oneRun(9) });
    expect([admitted, state.minuteUsed, state.dayUsed]).toEqual([3, 5, 5]);
  },

  async 'a grant ends at its instant, to the millisecond'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = { ...callOf(limitsOf({ perMinute: 1, perDay: 1_000_000 })), runs: oneRun(1) };
    // Without a grant, the limit admits only this request.
    await decide(store, call);
    // Repeats until one decision was made in the last millisecond of the grant, and another decision in the next millisecond.
    const seen = new Set<number>();
    while (!(seen.has(1) && seen.has(0))) {
      const untilMs = (await subject.nowMs()) + 30;
      await store.adjust(call.keyId, { grant: { limits: limitsOf({ perMinute: 1_000_000 }), untilMs } });
      for (let nowMs = 0; nowMs <= untilMs; ) {
        const outcomes = await Promise.all(Array.from({ length: 50 }, () => decide(store, call)));
        for (const { admitted, state, nowMs } of outcomes) {
          const isGranted = nowMs < untilMs;
          expect([untilMs - nowMs, admitted === 1, state.grant !== undefined]).toEqual([
            untilMs - nowMs,
            isGranted,
            isGranted,
          ]);
          seen.add(untilMs - nowMs);
        }
        nowMs = outcomes.at(-1)?.nowMs ?? 0;
      }
    }
  },

  async 'a grant begins at its instant, and not one millisecond earlier'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = { ...callOf(limitsOf({ perMinute: 1, perDay: 1_000_000 })), runs: oneRun(1) };
    // Without a grant, the limit admits only this request.
    await decide(store, call);
    // Repeats until one decision was made in the last millisecond before the grant, and another decision in the grant's first millisecond.
    const seen = new Set<number>();
    while (!(seen.has(-1) && seen.has(0))) {
      const fromMs = (await subject.nowMs()) + 30;
      const grant = { limits: limitsOf({ perMinute: 1_000_000 }), fromMs, untilMs: fromMs + 600_000 };
      await store.adjust(call.keyId, { grant });
      for (let nowMs = 0; nowMs <= fromMs; ) {
        const outcomes = await Promise.all(Array.from({ length: 50 }, () => decide(store, call)));
        for (const { admitted, state, nowMs } of outcomes) {
          expect([nowMs - fromMs, admitted === 1, state.grant]).toEqual([
            nowMs - fromMs,
            nowMs >= fromMs,
            grant,
          ]);
          seen.add(nowMs - fromMs);
        }
        nowMs = outcomes.at(-1)?.nowMs ?? 0;
      }
    }
  },

  async 'a grant limits no window that the limits do not name'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 3 }));
    await store.adjust(call.keyId, {
      grant: await grantOf(subject, { perSecond: 1, perMinute: 5, perMonth: 1 }),
    });
    const { admitted, state } = await decide(store, { ...call, runs: oneRun(9) });
    expect([admitted, ...usedOf(state)]).toEqual([5, 0, 5, 0, 0, 0]);
  },

  async 'a reset and the end of a ban leave a grant'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 1, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(limitsOf({ perMinute: 1, perDay: 100 })), bans };
    const grant = await grantOf(subject, { perMinute: 3 });
    await store.adjust(call.keyId, { grant });
    expect((await decide(store, { ...call, runs: oneRun(4) })).banned).toBe(1);
    expect(await store.adjust(call.keyId, { lift: true, bans })).toMatchObject({
      state: { grant, minuteUsed: 3 },
    });
    expect(await store.adjust(call.keyId, { reset: true, bans })).toMatchObject({
      state: { grant, minuteUsed: 0 },
    });
    expect((await decide(store, { ...call, runs: oneRun(3) })).admitted).toBe(3);
  },

  async 'a grant does not end a ban'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const bans = { after: 1, withinMs: 60_000, forMs: 60_000, maxMs: 600_000 };
    const call = { ...callOf(limitsOf({ perMinute: 1, perDay: 100 })), bans, runs: oneRun(2) };
    const { state } = await decide(store, call);
    await store.adjust(call.keyId, { grant: await grantOf(subject, { perMinute: 9 }) });
    const { banned, state: after } = await decide(store, call);
    expect([banned, after.bannedUntilMs]).toEqual([2, state.bannedUntilMs]);
  },

  async 'requests that a process counted alone under a grant are added to the used requests, even above the limit'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const call = callOf(limitsOf({ perMinute: 2, perDay: 100 }));
    await store.adjust(call.keyId, { grant: await grantOf(subject, { perMinute: 9 }) });
    const { state } = await decide(store, { ...call, runs: oneRun(1) });
    const alone = { ...nothingUnsent, minute: state.minute, minuteUsed: 6, day: state.day, dayUsed: 6 };
    const merged = await decide(store, { ...call, runs: oneRun(9), unsent: alone });
    expect([merged.admitted, merged.state.minuteUsed, merged.state.dayUsed]).toEqual([2, 9, 9]);
  },

  async 'a key without a recorded change has generation 0'(subject) {
    const store = await subject.open(await freshLengths(subject));
    const call = { ...callOf(limitsOf({ perMinute: 3 })), runs: oneRun(1), changedMs: 0 };
    expect((await decide(store, call)).admitted).toBe(1);
    expect((await decide(store, call)).state.minuteUsed).toBe(2);
  },
};

/**
 * The contract of stores that several processes share. Only one process uses a store in memory, so no other process changes its keys.
 */
export const sharedGuarantees: Readonly<Record<string, (subject: RedisSubject) => Promise<void>>> = {
  async 'a call with another generation than the key’s is stale: it decides nothing, charges nothing and keeps no counts'(
    subject,
  ) {
    const store = await subject.open(await freshLengths(subject));
    const call = { ...callOf(limitsOf({ perMinute: 3, perDay: 100 })), runs: oneRun(1) };
    const { state } = await decide(store, { ...call, changedMs: 0 });
    const quota = redisKeys.quota.name(subject.prefix, call.keyId);
    const unsent = { ...nothingUnsent, minute: state.minute, minuteUsed: 1, strikes: 1 };
    for (const [generation, known] of [
      [5, 0],
      [5, 4],
      // A failover has lost the last change.
      [5, 6],
    ] as const) {
      await subject.client.hset(quota, 'changedMs', generation);
      const before = await subject.client.hgetall(quota);
      const [reply] = await store.decide([{ ...call, unsent, changedMs: known }]);
      expect([known, reply]).toEqual([known, { kind: 'stale' }]);
      expect(await subject.client.hgetall(quota)).toEqual(before);
    }
    expect((await decide(store, { ...call, changedMs: 5 })).state.minuteUsed).toBe(2);
    // If Redis has lost the time of the change, the call is stale too.
    await subject.client.hdel(quota, 'changedMs');
    expect(await store.decide([{ ...call, changedMs: 5 }])).toEqual([{ kind: 'stale' }]);
    // A call has no generation if its key changes only with a reload.
    expect((await decide(store, call)).state.minuteUsed).toBe(3);
  },
};

/** A grant that lasts longer than the test. */
async function grantOf(subject: Subject, fields: Parameters<typeof limitsOf>[0]): Promise<Grant> {
  return { limits: limitsOf(fields), untilMs: (await subject.nowMs()) + 600_000 };
}

function usedOf({ secondUsed, minuteUsed, hourUsed, dayUsed, monthUsed }: Readonly<QuotaState>): number[] {
  return [secondUsed, minuteUsed, hourUsed, dayUsed, monthUsed];
}

/** A store under test. */
export interface Subject {
  /** Opens another client of the store. `skewMs` is the error of the client's own clock. */
  open(lengths: WindowsMs, skewMs?: number): Promise<QuotaStore> | QuotaStore;
  /** The store's clock. */
  nowMs(): Promise<number>;
}

const nothingUnsent: Unsent = {
  ...noCounts,
  strikes: 0,
  bannedUntilMs: 0,
  banLevel: 0,
  liftedMs: 0,
  resetMs: 0,
};

export async function freshLengths(subject: Pick<Subject, 'nowMs'>): Promise<WindowsMs> {
  return freshWindows(await subject.nowMs());
}

/** A call for a new key. The call has no requests. The call's ban threshold is higher than the number of refusals in any test. */
export function callOf(limits: QuotaCall['limits']): QuotaCall {
  const bans = { after: 1_000_000, withinMs: 60_000, forMs: 60_000, maxMs: 86_400_000 };
  return { keyId: freshPrefix(), limits, bans, runs: [] };
}

export async function decide(store: QuotaStore | undefined, call: QuotaCall): Promise<QuotaOutcome> {
  const [reply] = (await store?.decide([call])) ?? [];
  if (reply?.kind !== 'decided') throw new Error(`no decision: ${JSON.stringify(reply)}`);
  return reply.outcome;
}

async function waitUntil(subject: Subject, atMs: number): Promise<void> {
  for (let nowMs = await subject.nowMs(); nowMs < atMs; nowMs = await subject.nowMs()) {
    await sleep(atMs - nowMs);
  }
}

function sum(outcomes: readonly QuotaOutcome[], field: 'admitted' | 'refused'): number {
  return outcomes.reduce((total, outcome) => total + outcome[field], 0);
}
