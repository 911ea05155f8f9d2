import { describe, expect, it } from 'vitest';
import { decideKey } from '../../../gateway/quota/decide-key.ts';
import { emptyQuotaState, type QuotaState } from '../../../gateway/quota/hash.ts';
import { decisionAt } from '../../../gateway/request/limit/decision-at.ts';
import { noneLater, rateLimitState, roomAtMs } from '../../../gateway/request/limit/rate-limit-state.ts';
import { calendarWindowsMs } from '../../../gateway/shared/calendar-windows.ts';
import { shownWindow } from '../../../gateway/shared/model.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { oneRun } from '../../support/one-run.ts';
import { noBans } from './limiter-fixture.ts';

const windowsMs = calendarWindowsMs;
const common = { source: 'shared', windowsMs, usedLater: noneLater } as const;
const nowMs = 86_400_000 * 20_000 + 3_600_000;
const minute = nowMs / 60_000;
const day = 20_000;
const minuteEnd = (minute + 1) * 60_000;
const dayEnd = (day + 1) * 86_400_000;

it.each([
  { used: [1, 1], limits: [10, 100], inForce: 'minute', remaining: 9, resetMs: minuteEnd, roomAtMs: 0 },
  { used: [1, 95], limits: [10, 100], inForce: 'day', remaining: 5, resetMs: dayEnd, roomAtMs: 0 },
  { used: [5, 95], limits: [10, 100], inForce: 'day', remaining: 5, resetMs: dayEnd, roomAtMs: 0 },
  {
    ...{ used: [10, 50], limits: [10, 100] },
    ...{ inForce: 'minute', remaining: 0, resetMs: minuteEnd, roomAtMs: minuteEnd },
  },
  {
    ...{ used: [10, 100], limits: [10, 100] },
    ...{ inForce: 'day', remaining: 0, resetMs: dayEnd, roomAtMs: dayEnd },
  },
  {
    ...{ used: [50, 50], limits: [10, 100] },
    ...{ inForce: 'minute', remaining: 0, resetMs: minuteEnd, roomAtMs: minuteEnd },
  },
])('$used used of $limits makes the $inForce the tightest window', (row) => {
  const [minuteUsed = 0, dayUsed = 0] = row.used;
  const [perMinute = 0, perDay = 0] = row.limits;
  const state = { ...emptyQuotaState, minute, minuteUsed, day, dayUsed };
  const terms = { limits: limitsOf({ perMinute, perDay }), windowsMs, nowMs };
  const at = rateLimitState(state, terms);
  expect(at.inForce).toMatchObject({ name: row.inForce, remaining: row.remaining, resetMs: row.resetMs });
  expect(at.windows.map((window) => [window.name, window.windowSeconds])).toEqual([
    ['minute', 60],
    ['day', 86_400],
  ]);
  expect(roomAtMs(at, state, terms, { units: 1 })).toBe(row.roomAtMs);
});

it('each request of a batch gets its own remaining, and a banned request the time of the next admission', () => {
  const bannedUntilMs = nowMs + 1_000;
  const state = { ...emptyQuotaState, minute, minuteUsed: 3, day, dayUsed: 50, bannedUntilMs, banLevel: 1 };
  const together = {
    ...{ nowMs, admitted: 2, refused: 1, banned: 1, crowded: 0, state },
    ...{ ...common, units: 1, limits: limitsOf({ perMinute: 3, perDay: 1000 }) },
  };
  const [first, second, refused, banned] = [0, 1, 2, 3].map((index) => decisionAt(index, together));
  expect([first?.kind, first?.rateLimit.inForce.remaining]).toEqual(['admitted', 1]);
  expect([second?.kind, second?.rateLimit.inForce.remaining]).toEqual(['admitted', 0]);
  expect(refused).toMatchObject({ kind: 'refused', retryAtMs: minuteEnd });
  // The ban ends before the minute window, which is exhausted. The day window still has room.
  expect(banned).toMatchObject({ kind: 'banned', retryAtMs: minuteEnd });
  expect(banned?.rateLimit).toMatchObject({
    ban: { untilMs: bannedUntilMs, retryAtMs: minuteEnd },
    inForce: { name: 'minute', remaining: 0, resetMs: minuteEnd },
    windows: [
      { name: 'minute', remaining: 0, resetMs: minuteEnd },
      { name: 'day', remaining: 950, resetMs: (day + 1) * windowsMs.day },
    ],
  });
});

it('a request of several units is admitted when they fit, and its batch counts the cost of each request', () => {
  const state = { ...emptyQuotaState, minute, minuteUsed: 8, day, dayUsed: 97 };
  const limits = limitsOf({ perMinute: 10, perDay: 100 });
  const outcome = { nowMs, admitted: 2, refused: 1, banned: 0, crowded: 0, state };
  const at = (index: number, units: number) => decisionAt(index, { ...outcome, ...common, units, limits });
  expect([0, 1].map((index) => at(index, 4).rateLimit.inForce.remaining)).toEqual([6, 2]);
  expect(at(2, 4)).toMatchObject({ units: 4, retryAtMs: dayEnd, rateLimit: { inForce: { remaining: 2 } } });
  // The day window has room for 3 units.
  expect(at(2, 3)).toMatchObject({ units: 3, retryAtMs: minuteEnd });
});

it('during a ban the tightest window keeps its remaining requests, and the header fields show 0 until the ban ends', () => {
  const bannedUntilMs = minuteEnd + 30_000;
  const state = { ...emptyQuotaState, minute, minuteUsed: 1, day, dayUsed: 50, bannedUntilMs, banLevel: 1 };
  const together = {
    ...{ nowMs, admitted: 0, refused: 0, banned: 1, crowded: 0, state },
    ...{ ...common, units: 1, limits: limitsOf({ perMinute: 3, perDay: 1000 }) },
  };
  const decision = decisionAt(0, together);
  expect(decision).toMatchObject({
    retryAtMs: bannedUntilMs,
    rateLimit: {
      inForce: { name: 'minute', limit: 3, remaining: 2, resetMs: minuteEnd },
      windows: [{ remaining: 2, resetMs: minuteEnd }, { remaining: 950 }],
    },
  });
  const told = { name: 'minute', limit: 3, remaining: 0, resetMs: bannedUntilMs };
  expect(shownWindow(decision.rateLimit)).toMatchObject(told);
});

describe('under a grant', () => {
  const limits = limitsOf({ perMinute: 3, perDay: 100 });
  const stateUnder = (untilMs: number, dayUsed: number) => ({
    ...{ ...emptyQuotaState, minute, minuteUsed: 10, day, dayUsed },
    grant: { limits: limitsOf({ perMinute: 10, perDay: 500 }), untilMs },
  });

  it('a response has the grant’s limits until its end', () => {
    const applyGrant = (atMs: number) =>
      rateLimitState(stateUnder(nowMs + 5_000, 20), { limits, windowsMs, nowMs: atMs }).windows.map(
        ({ limit, remaining }) => [limit, remaining],
      );
    expect(applyGrant(nowMs + 4_999)).toEqual([
      [10, 0],
      [500, 480],
    ]);
    expect(applyGrant(nowMs + 5_000)).toEqual([
      [3, 0],
      [100, 80],
    ]);
  });

  it.each([
    { ends: 'after the minute', untilMs: minuteEnd + 1, dayUsed: 200, retryAtMs: minuteEnd },
    { ends: 'with the minute', untilMs: minuteEnd, dayUsed: 200, retryAtMs: dayEnd },
    { ends: 'before the minute', untilMs: nowMs + 1, dayUsed: 200, retryAtMs: dayEnd },
    {
      ends: 'before the minute, but the day has room',
      untilMs: nowMs + 1,
      dayUsed: 99,
      retryAtMs: minuteEnd,
    },
  ])(
    'a refused request gets the time when it will fit: the grant ends $ends',
    ({ untilMs, dayUsed, retryAtMs }) => {
      const outcome = {
        nowMs,
        admitted: 0,
        refused: 1,
        banned: 0,
        crowded: 0,
        state: stateUnder(untilMs, dayUsed),
      };
      const decision = decisionAt(0, { ...outcome, ...common, units: 1, limits });
      expect(decision).toMatchObject({ kind: 'refused', retryAtMs });
      const later = decideKey(
        outcome.state,
        { keyId: 'acme', limits, bans: noBans, runs: oneRun(1) },
        windowsMs,
        retryAtMs,
      );
      expect(later.admitted).toBe(1);
    },
  );

  it.each([
    { ends: 'before the minute', untilMs: nowMs + 1, dayUsed: 50, retryAtMs: nowMs + 1 },
    { ends: 'before the minute, and the day is spent', untilMs: nowMs + 1, dayUsed: 500, retryAtMs: dayEnd },
    { ends: 'after the minute', untilMs: minuteEnd + 1, dayUsed: 50, retryAtMs: minuteEnd },
  ])(
    'a grant of fewer requests than the plan makes room at its end at the latest, if the plan has room ($ends)',
    (row) => {
      const grant = { limits: limitsOf({ perMinute: 2 }), untilMs: row.untilMs };
      const state = { ...emptyQuotaState, minute, minuteUsed: 2, day, dayUsed: row.dayUsed, grant };
      const outcome = { nowMs, admitted: 0, refused: 1, banned: 0, crowded: 0, state };
      expect(decisionAt(0, { ...outcome, ...common, units: 1, limits })).toMatchObject({
        kind: 'refused',
        retryAtMs: row.retryAtMs,
      });
    },
  );

  it('a request above the limit of a grant gets the end of the grant, however often the window resets before', () => {
    const grant = { limits: limitsOf({ perMinute: 2 }), untilMs: minuteEnd + 90_000 };
    const state = { ...emptyQuotaState, minute, minuteUsed: 0, day, dayUsed: 50, grant };
    const outcome = { nowMs, admitted: 0, refused: 1, banned: 0, crowded: 0, state };
    const decision = decisionAt(0, { ...outcome, ...common, units: 3, limits });
    expect(decision).toMatchObject({ kind: 'refused', retryAtMs: grant.untilMs });
  });

  it('a request that only a grant admits gets the reset of its windows, although it may fit in no window after the grant', () => {
    const grant = { limits: limitsOf({ perMinute: 50 }), untilMs: dayEnd };
    const state = { ...emptyQuotaState, minute, minuteUsed: 40, day, dayUsed: 70, grant };
    const outcome = { nowMs, admitted: 0, refused: 1, banned: 0, crowded: 0, state };
    const retryAtMs = (units: number) =>
      decisionAt(0, { ...outcome, ...common, units, limits }) as { retryAtMs?: number };
    expect([20, 40].map((units) => retryAtMs(units).retryAtMs)).toEqual([minuteEnd, dayEnd]);
  });

  it.each([
    { limits: { perMinute: 50 }, fromMs: nowMs + 1, untilMs: dayEnd, dayUsed: 50, retryAtMs: nowMs + 1 },
    { limits: { perMinute: 50 }, fromMs: minuteEnd, untilMs: dayEnd, dayUsed: 50, retryAtMs: minuteEnd },
    { limits: { perMinute: 50 }, fromMs: nowMs + 1, untilMs: dayEnd, dayUsed: 100, retryAtMs: dayEnd },
    { limits: { perDay: 50 }, fromMs: nowMs + 1, untilMs: dayEnd, dayUsed: 50, retryAtMs: dayEnd },
    {
      limits: { perDay: 50 },
      fromMs: nowMs + 1,
      untilMs: minuteEnd + 5,
      dayUsed: 50,
      retryAtMs: minuteEnd + 5,
    },
    { limits: { perMinute: 50 }, fromMs: minuteEnd + 1, untilMs: dayEnd, dayUsed: 50, retryAtMs: minuteEnd },
  ])('a refused request before the grant gets the time when it will fit: $limits, $dayUsed used', (row) => {
    const grant = { limits: limitsOf(row.limits), fromMs: row.fromMs, untilMs: row.untilMs };
    const state = { ...emptyQuotaState, minute, minuteUsed: 3, day, dayUsed: row.dayUsed, grant };
    const outcome = { nowMs, admitted: 0, refused: 1, banned: 0, crowded: 0, state };
    const decision = decisionAt(0, { ...outcome, ...common, units: 1, limits });
    expect(decision).toMatchObject({ kind: 'refused', retryAtMs: row.retryAtMs });
    expect(decision.rateLimit.windows.map(({ limit }) => limit)).toEqual([3, 100]);
    const admittedAt = (atMs: number) =>
      decideKey(state, { keyId: 'acme', limits, bans: noBans, runs: oneRun(1) }, windowsMs, atMs).admitted;
    expect([admittedAt(row.retryAtMs - 1), admittedAt(row.retryAtMs)]).toEqual([0, 1]);
  });

  it('a banned request gets the time when it will fit after the ban, even if the grant ends before', () => {
    const bannedUntilMs = minuteEnd + 30_000;
    const before = stateUnder(bannedUntilMs, 200);
    const retryAtMs = (state: QuotaState) => {
      const outcome = {
        nowMs,
        admitted: 0,
        refused: 0,
        banned: 1,
        crowded: 0,
        state: { ...state, bannedUntilMs },
      };
      const decision = decisionAt(0, { ...outcome, ...common, units: 1, limits });
      return decision.kind === 'banned' ? decision.retryAtMs : undefined;
    };
    expect(retryAtMs(before)).toBe(dayEnd);
    expect(retryAtMs(stateUnder(bannedUntilMs + 1, 200))).toBe(bannedUntilMs);
    expect(retryAtMs({ ...before, dayUsed: 99 })).toBe(bannedUntilMs);
  });
});
