import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type CreditStore,
  createMemoryCredits,
} from '../../../gateway/capabilities/makegood/credits/credit-store.ts';
import {
  type CreditRun,
  type Credits,
  giveBack,
  noCredits,
} from '../../../gateway/capabilities/makegood/credits/give-back.ts';
import { createRedisCredits } from '../../../gateway/capabilities/makegood/credits/redis-credits.ts';
import { adjust } from '../../../gateway/quota/adjust.ts';
import { emptyQuotaState, type QuotaState, sideOf } from '../../../gateway/quota/hash.ts';
import { usedOf } from '../../../gateway/quota/windows.ts';
import { calendarWindowsMs, windowIndex } from '../../../gateway/shared/calendar-windows.ts';
import type { Bucket } from '../../../gateway/usage/record-fields.ts';
import { connectRedis } from '../../support/connect-redis.ts';
import { inspect } from '../../support/inspect.ts';
import { freshPrefix, redisUrl } from '../../support/redis.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { patientStore } from '../../support/tuning.ts';

const hourMs = 3_600_000;
/** With few hours in a call to the store, the hours of many tests need several calls. */
const bounds = tunedBounds({ ...patientStore, creditHoursPerCallMax: 2, creditsShownMax: 2 });

interface Subject {
  readonly credits: CreditStore;
  /** Replaces the counts of a key. */
  put(keyId: string, state: QuotaState): Promise<void>;
  /** Returns the used units of the day and the month, of the plan or of the trial. */
  used(keyId: string, bucket?: Bucket): Promise<readonly [day: number, month: number]>;
}

async function onRedis(): Promise<Subject & { readonly redis: Redis; readonly prefix: string }> {
  const prefix = freshPrefix();
  const connection = await connectRedis({ prefix, place: { url: redisUrl() }, bounds });
  const redis = inspect(redisUrl());
  onTestFinished(() => {
    connection.close();
    redis.disconnect();
  });
  const nameOf = (keyId: string) => `${prefix}:{${keyId}}`;
  return {
    redis,
    prefix,
    credits: createRedisCredits(connection, bounds),
    async put(keyId, { day, dayUsed, month, monthUsed, resetMs, trial, ...rest }) {
      await redis.del(nameOf(keyId));
      const ofTrial = Object.entries(trial ?? {}).map(([name, one]) => [`trial:${name}`, one] as const);
      const ofGroups = Object.entries(rest).filter(([name]) => name.includes(':')) as [string, number][];
      const ofPlan = [...Object.entries({ day, dayUsed, month, monthUsed, resetMs }), ...ofGroups];
      const fields = [...ofPlan, ...ofTrial].filter(([, one]) => one > 0);
      if (fields.length > 0) await redis.hset(nameOf(keyId), Object.fromEntries(fields));
    },
    async used(keyId, bucket = 'plan') {
      const prefix = prefixOf(bucket);
      const [day, month] = await redis.hmget(nameOf(keyId), `${prefix}dayUsed`, `${prefix}monthUsed`);
      return [Number(day ?? 0), Number(month ?? 0)];
    },
  };
}

async function inMemory(): Promise<Subject> {
  const states = new Map<string, Readonly<QuotaState>>();
  const stateOf = (keyId: string) => states.get(keyId) ?? emptyQuotaState;
  const adjustBy: Parameters<typeof createMemoryCredits>[0]['adjustBy'] = (keyId, changeOf) => {
    states.set(keyId, adjust(stateOf(keyId), changeOf(stateOf(keyId)), Date.now()).state);
  };
  return {
    credits: createMemoryCredits({ adjustBy, nowMs: Date.now, bounds }),
    async put(keyId, state) {
      states.set(keyId, state);
    },
    async used(keyId, bucket = 'plan') {
      return usedIn(stateOf(keyId), bucket);
    },
  };
}

const buckets: readonly Bucket[] = ['plan', 'trial', 'reports', 'trial.reports', 'trial.big-2'];

/** The prefix of the fields of a bucket in the hash of a key. */
function prefixOf(bucket: Bucket): string {
  return bucket === 'plan' ? '' : `${bucket.replace('.', ':')}:`;
}

function usedIn(state: Readonly<QuotaState>, bucket: Bucket): readonly [day: number, month: number] {
  const side = bucket.startsWith('trial') ? state.trial : state;
  const group = bucket.replace(/^(plan|trial)\.?/, '');
  const used = (window: 'day' | 'month') =>
    (side && usedOf(side, group === '' ? { window } : { window, group })) ?? 0;
  return [used('day'), used('month')];
}

function runOf(members: Partial<CreditRun> = {}): CreditRun {
  const nowMs = Date.now();
  return {
    name: 'run',
    fromMs: nowMs - hourMs,
    toMs: nowMs,
    oldestHour: Math.floor(nowMs / hourMs) - 240,
    keptUntilMs: nowMs + 240 * hourMs,
    isDryRun: false,
    ...members,
  };
}

function stateAt(atMs: number, members: Partial<QuotaState> = {}): QuotaState {
  const day = windowIndex(calendarWindowsMs.day, atMs);
  return {
    ...emptyQuotaState,
    day,
    month: windowIndex(calendarWindowsMs.month, atMs),
    ...members,
  };
}

/** The failed units of one minute, given as the time of the minute. */
function failedAt(atMs: number, units: number, upstream = 'pets', bucket: Bucket = 'plan') {
  const hour = Math.floor(atMs / hourMs);
  return { bucket, hour, upstream, minutes: [{ minute: Math.floor((atMs % hourMs) / 60_000), units }] };
}

const failedHours = fc.array(
  fc.record({
    // Hours of the present day, of the present month, of earlier months, and ahead of the clock.
    hoursBack: fc.constantFrom(0, 0, 1, 5, 23, 30, 100, 400, 800, -1, -30),
    bucket: fc.constantFrom(...buckets),
    upstream: fc.constantFrom('pets', 'payments', '*'),
    units: fc.uniqueArray(fc.tuple(fc.nat({ max: 59 }), fc.integer({ min: 1, max: 30 })), {
      selector: ([minute]) => minute,
      minLength: 1,
      maxLength: 5,
    }),
  }),
  { maxLength: 6 },
);

const step = fc.record({
  failedHours,
  run: fc.constantFrom('one', 'two', 'three', 'four'),
  isDryRun: fc.constantFrom(false, false, false, true),
});

const side = fc.record({
  daysBack: fc.constantFrom(0, 0, 0, 1, -1),
  monthsBack: fc.constantFrom(0, 0, 0, 1, -1),
  dayUsed: fc.nat({ max: 120 }),
  monthUsed: fc.nat({ max: 300 }),
});

const beginning = fc.record({
  plan: side,
  reports: fc.option(side, { nil: undefined }),
  trial: fc.option(side, { nil: undefined }),
  reportsInTrial: fc.option(side, { nil: undefined }),
  resetHoursBack: fc.constantFrom(undefined, undefined, 0, 4, 300),
});

describe('the script in Redis and the pure function', () => {
  it('give the same units back, and remember the same credits', async () => {
    const { credits, put, used, redis, prefix } = await onRedis();
    await fc.assert(
      fc.asyncProperty(beginning, fc.array(step, { minLength: 1, maxLength: 5 }), async (begin, steps) => {
        const keyId = freshPrefix();
        const nowMs = Date.now();
        const now = stateAt(nowMs);
        const { plan, reports, trial, reportsInTrial, resetHoursBack } = begin;
        const countsOf = ({ daysBack, monthsBack, ...used }: typeof plan) => ({
          ...{ day: now.day - daysBack, month: now.month - monthsBack, ...used },
        });
        const ofGroup = (counts: typeof plan | undefined) =>
          Object.fromEntries(
            Object.entries(counts ? countsOf(counts) : {}).map(([name, count]) => [`reports:${name}`, count]),
          );
        let state: Readonly<QuotaState> = {
          ...now,
          ...countsOf(plan),
          ...ofGroup(reports),
          trial: trial && { ...sideOf(now), ...countsOf(trial), ...ofGroup(reportsInTrial) },
          resetMs: resetHoursBack === undefined ? 0 : nowMs - resetHoursBack * hourMs,
        };
        let model: Credits = noCredits;
        await put(keyId, state);
        for (const { failedHours: hours, run: name, isDryRun } of steps) {
          const failed = hours.map(({ hoursBack, units, ...of }) => ({
            ...of,
            hour: Math.floor(nowMs / hourMs) - hoursBack,
            minutes: units.map(([minute, of]) => ({ minute, units: of })),
          }));
          const run = runOf({ name, isDryRun, fromMs: nowMs - hourMs, toMs: nowMs });
          const given = await credits.giveBack({ keyId, failed, run });
          // The store makes a call for each two hours. The result of a dry run therefore is the sum of results that do not see each other.
          const expected = { kind: 'given', failedUnits: 0, units: { day: 0, month: 0 } };
          for (let from = 0; from < failed.length; from += 2) {
            const call = { keyId, failed: failed.slice(from, from + 2), run };
            const done = giveBack(state, model, call, {
              windowsMs: calendarWindowsMs,
              nowMs,
              lastMax: bounds.creditsShownMax,
            });
            ({ state } = adjust(state, done.change, nowMs));
            ({ credits: model } = done);
            expected.failedUnits += done.given.failedUnits;
            expected.units.day += done.given.units.day;
            expected.units.month += done.given.units.month;
          }
          expect(given).toEqual(expected);
          for (const bucket of buckets) expect(await used(keyId, bucket)).toEqual(usedIn(state, bucket));
          const [shown] = await credits.read([keyId]);
          expect(shown?.map((credit) => ({ ...credit, atMs: nowMs }))).toEqual(
            model.last.map(({ run: _, ...credit }) => credit),
          );
          const { last: _, ...handled } = await redis.hgetall(`${prefix}:{${keyId}}:credits`);
          expect(handled).toEqual(
            Object.fromEntries(
              [...model.handled].map(([field, ofHour]) => [
                field,
                [...ofHour]
                  .sort(([a], [b]) => a - b)
                  .map((pair) => pair.join(' '))
                  .join(' '),
              ]),
            ),
          );
        }
      }),
      { numRuns: 150 },
    );
  });
});

describe.each([
  { name: 'in memory', open: inMemory },
  { name: 'in Redis', open: onRedis },
])('credits $name', ({ open }) => {
  it('a minute is given back once, and later failures of the same minute are added', async () => {
    const { credits, put, used } = await open();
    const nowMs = Date.now();
    await put('acme', stateAt(nowMs, { dayUsed: 100, monthUsed: 1_000 }));
    const give = async (units: number, upstream: string) => {
      return credits.giveBack({ keyId: 'acme', failed: [failedAt(nowMs, units, upstream)], run: runOf() });
    };
    expect(await give(12, 'pets')).toEqual({ kind: 'given', failedUnits: 12, units: { day: 12, month: 12 } });
    expect(await give(12, 'pets')).toEqual({ kind: 'given', failedUnits: 0, units: { day: 0, month: 0 } });
    expect(await give(15, 'pets')).toEqual({ kind: 'given', failedUnits: 3, units: { day: 3, month: 3 } });
    expect(await give(5, 'payments')).toMatchObject({ failedUnits: 5 });
    expect(await used('acme')).toEqual([80, 980]);
  });

  it('each bucket gets back what it charged, once, and the figures are those of the plan', async () => {
    const { credits, put, used } = await open();
    const nowMs = Date.now();
    const now = stateAt(nowMs, { dayUsed: 100, monthUsed: 1_000 });
    await put('acme', { ...now, trial: { ...sideOf(now), dayUsed: 50, monthUsed: 500 } });
    const give = async (ofPlan: number, ofTrial: number) => {
      const failed = [failedAt(nowMs, ofPlan), failedAt(nowMs, ofTrial, 'pets', 'trial')];
      return credits.giveBack({ keyId: 'acme', failed, run: runOf() });
    };
    for (let time = 0; time < 2; time++) {
      const failedUnits = time === 0 ? 12 : 0;
      expect(await give(12, 4)).toMatchObject({ failedUnits, units: { day: failedUnits } });
      expect(await used('acme')).toEqual([88, 988]);
      expect(await used('acme', 'trial')).toEqual([46, 496]);
    }
    // The units of the trial can reach the record later than the units of the plan.
    expect(await give(12, 7)).toMatchObject({ failedUnits: 0, units: { day: 0, month: 0 } });
    expect(await give(12, 7)).toMatchObject({ failedUnits: 0, units: { day: 0, month: 0 } });
    expect(await used('acme')).toEqual([88, 988]);
    expect(await used('acme', 'trial')).toEqual([43, 493]);
  });

  it('a window that only the trial limits gets the units of the trial', async () => {
    const { credits, put, used } = await open();
    const nowMs = Date.now();
    const now = stateAt(nowMs);
    await put('acme', { ...now, month: 0, dayUsed: 9, trial: { ...sideOf(now), monthUsed: 9 } });
    const failed = [failedAt(nowMs, 5), failedAt(nowMs, 5, 'pets', 'trial')];
    expect(await credits.giveBack({ keyId: 'acme', failed, run: runOf() })).toMatchObject({
      units: { day: 5, month: 0 },
    });
    expect(await used('acme', 'trial')).toEqual([0, 4]);
  });

  it('never more than the used units is given back', async () => {
    const { credits, put, used } = await open();
    const nowMs = Date.now();
    await put('acme', stateAt(nowMs, { dayUsed: 0, monthUsed: 7 }));
    const call = { keyId: 'acme', failed: [failedAt(nowMs, 12)], run: runOf() };
    expect(await credits.giveBack(call)).toMatchObject({ failedUnits: 12, units: { day: 0, month: 7 } });
    expect(await used('acme')).toEqual([0, 0]);
  });

  it('a key without counts gets nothing, and no counts', async () => {
    const { credits, used } = await open();
    const call = { keyId: 'nobody', failed: [failedAt(Date.now(), 12)], run: runOf() };
    expect(await credits.giveBack(call)).toMatchObject({ failedUnits: 12, units: { day: 0, month: 0 } });
    expect(await used('nobody')).toEqual([0, 0]);
    expect(await credits.read(['nobody'])).toEqual([[]]);
  });

  it('only open windows that contain the minute get units', async () => {
    const { credits, put } = await open();
    const nowMs = Date.now();
    const { day, month } = stateAt(nowMs);
    const give = async (keyId: string, atMs: number) => {
      const given = await credits.giveBack({ keyId, failed: [failedAt(atMs, 5)], run: runOf() });
      return given.kind === 'given' ? given.units : given;
    };
    const startOfMonthMs = Date.UTC(1970, month);
    const startOfDayMs = day * 24 * hourMs;
    const used = { dayUsed: 50, monthUsed: 50 };
    await put('first of the day', stateAt(nowMs, used));
    expect(await give('first of the day', startOfDayMs)).toEqual({ day: 5, month: 5 });
    await put('last of the day before', stateAt(nowMs, used));
    const isSameMonth = startOfDayMs > startOfMonthMs;
    expect(await give('last of the day before', startOfDayMs - 1)).toEqual({
      day: 0,
      month: isSameMonth ? 5 : 0,
    });
    await put('first of the month', stateAt(nowMs, used));
    expect(await give('first of the month', startOfMonthMs)).toMatchObject({ month: 5 });
    await put('last of the month before', stateAt(nowMs, used));
    expect(await give('last of the month before', startOfMonthMs - 1)).toEqual({ day: 0, month: 0 });
    // The key has sent no request in the present windows, so its counts still belong to ended windows.
    await put('quiet', { ...stateAt(nowMs, used), day: day - 1, month: month - 1 });
    expect(await give('quiet', startOfDayMs - 1)).toEqual({ day: 0, month: 0 });
  });

  it('units that a reset has already returned are not given back again', async () => {
    const { credits, put, used } = await open();
    const nowMs = Date.now();
    const minuteStartMs = Math.floor(nowMs / 60_000) * 60_000;
    await put('acme', stateAt(nowMs, { dayUsed: 9, monthUsed: 9, resetMs: minuteStartMs }));
    const failed = [failedAt(minuteStartMs - 60_000, 5), failedAt(minuteStartMs, 2, 'payments')];
    expect(await credits.giveBack({ keyId: 'acme', failed, run: runOf() })).toMatchObject({ failedUnits: 7 });
    expect((await used('acme'))[1]).toBe(7);
  });

  it('a dry run changes nothing', async () => {
    const { credits, put, used } = await open();
    const nowMs = Date.now();
    await put('acme', stateAt(nowMs, { dayUsed: 9, monthUsed: 9 }));
    const call = { keyId: 'acme', failed: [failedAt(nowMs, 5)], run: runOf({ isDryRun: true }) };
    for (let time = 0; time < 2; time++) {
      expect(await credits.giveBack(call)).toEqual({
        kind: 'given',
        failedUnits: 5,
        units: { day: 5, month: 5 },
      });
    }
    expect(await used('acme')).toEqual([9, 9]);
    expect(await credits.read(['acme'])).toEqual([[]]);
  });

  it('many calls of different runs at the same time give each unit back once', async () => {
    const { credits, put, used } = await open();
    const nowMs = Date.now();
    await put('acme', stateAt(nowMs, { dayUsed: 500, monthUsed: 500 }));
    const hours = Array.from({ length: 5 }, (_, index) => failedAt(nowMs, 7, `upstream-${index}`));
    const given = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        credits.giveBack({
          keyId: 'acme',
          failed: hours.slice(index % 3),
          run: runOf({ name: `r${index}` }),
        }),
      ),
    );
    expect(given.reduce((sum, one) => sum + (one.kind === 'given' ? one.failedUnits : 0), 0)).toBe(35);
    expect(await used('acme')).toEqual([465, 465]);
  });
});

it('the credits of a key are forgotten when its failed units can no longer be read', async () => {
  const { credits, put, redis, prefix } = await onRedis();
  const nowMs = Date.now();
  const name = `${prefix}:{acme}:credits`;
  await put('acme', stateAt(nowMs, { dayUsed: 100, monthUsed: 100 }));
  const first = runOf({ keptUntilMs: nowMs + 50 * hourMs });
  await credits.giveBack({ keyId: 'acme', failed: [failedAt(nowMs - 20 * hourMs, 5)], run: first });
  const later = runOf({ oldestHour: Math.floor(nowMs / hourMs) - 10, keptUntilMs: nowMs + 30 * hourMs });
  await credits.giveBack({ keyId: 'acme', failed: [failedAt(nowMs, 5)], run: later });
  const hours = Object.keys(await redis.hgetall(name)).filter((field) => field !== 'last');
  expect(hours).toEqual([`${Math.floor(nowMs / hourMs)}:pets`]);
  const expiresMs = nowMs + (await redis.pttl(name));
  expect(expiresMs).toBeGreaterThan(nowMs + 49 * hourMs);
  expect(expiresMs).toBeLessThanOrEqual(nowMs + 51 * hourMs);
});

it('a Redis key that another program has overwritten makes the call fail without any change', async () => {
  const { credits, put, used, redis, prefix } = await onRedis();
  const nowMs = Date.now();
  await put('acme', stateAt(nowMs, { dayUsed: 100, monthUsed: 100 }));
  await redis.set(`${prefix}:{acme}:credits`, 'text');
  const call = { keyId: 'acme', failed: [failedAt(nowMs, 5)], run: runOf() };
  expect(await credits.giveBack(call)).toMatchObject({ kind: 'failed', mayHaveRun: false });
  expect(await used('acme')).toEqual([100, 100]);
});
