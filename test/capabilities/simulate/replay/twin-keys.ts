import fc from 'fast-check';
import { pino } from 'pino';
import type { EditedStep } from '../../../../gateway/capabilities/simulate/replay/replayed-key.ts';
import type { Calendar } from '../../../../gateway/capabilities/simulate/replay/window-rooms.ts';
import { toLimitFields } from '../../../../gateway/keys/limits/limit-fields.ts';
import { decideKey } from '../../../../gateway/quota/decide-key.ts';
import { emptyQuotaState, type QuotaState } from '../../../../gateway/quota/hash.ts';
import { type DecidedRun, decidedRuns, decisionAt } from '../../../../gateway/request/limit/decision-at.ts';
import { calendarWindowsMs } from '../../../../gateway/shared/calendar-windows.ts';
import { type BanPolicy, type Limits, planWindows } from '../../../../gateway/shared/model.ts';
import { type KeyMinutes, KeyMinutesBuilder } from '../../../../gateway/usage/read/key-minutes.ts';
import { outcomeOf, outcomes } from '../../../../gateway/usage/tally.ts';
import { askAdmin, makeToken } from '../../../support/admin-client.ts';
import { createGateway } from '../../../support/create-gateway.ts';
import { makeKey } from '../../../support/gateway-process.ts';
import { oneRun } from '../../../support/one-run.ts';
import { settingsOf } from '../../../support/settings-of.ts';

export const minuteMs = 60_000;
const dayMs = 86_400_000;
export const calendar: Calendar = { minuteMs, windowsMs: calendarWindowsMs };

/**
 * Two keys that send the same requests at the same times. One key keeps its limits, and an edit changes the limits of the other key.
 */
export interface Twins {
  readonly before: Limits;
  readonly after: Limits;
  readonly bans: BanPolicy;
  /** The start of the clock, epoch ms. */
  readonly startMs: number;
  readonly steps: readonly Step[];
  /** The index of the step that follows the edit. The edit is made at the beginning of a minute. */
  readonly editAt: number;
  /** Further limits of both keys. Each pair applies from the beginning of a minute, before the step of this index. */
  readonly changes?: readonly { readonly at: number; readonly before: Limits; readonly after: Limits }[];
}

interface Step {
  readonly pauseMs: number;
  readonly requests: number;
  /** The cost of each request in units, by default 1. */
  readonly units?: number;
}

export interface TwinsRecorded extends Twins {
  /** The record of the key with unchanged limits, and the record of the edited key. */
  readonly kept: KeyMinutes;
  readonly edited: KeyMinutes;
  /** The number of 429 responses for each key. */
  readonly refused: readonly [kept: number, edited: number];
  readonly fromMinute: number;
  readonly limitSteps: readonly EditedStep[];
}

/** The members of a replay in which the limits change only once, by the edit. */
export function editedOnce(present: Limits, edited: Limits, bans: BanPolicy) {
  return { steps: [{ fromMinute: 0, present, edited }], bans: { present: bans, edited: bans } };
}

const { token, entry } = makeToken('read');
const log = { logger: pino({ level: 'silent' }), access: () => {} };

/**
 * Sends the requests over HTTP to a real gateway, and reads the record from the admin API. The test controls the clock of the gateway.
 * All requests have an unknown path, so an admitted request gets a 404.
 */
export async function recordTwins(twins: Twins): Promise<TwinsRecorded> {
  const [kept, edited] = [makeKey({ id: 'kept', plan: 'kept' }), makeKey({ id: 'edited', plan: 'edited' })];
  const seconds = (ms: number) => `${ms / 1_000}s`;
  const { after, withinMs, forMs, maxMs } = twins.bans;
  const settings = (limits: Limits) =>
    settingsOf({
      plans: { kept: toLimitFields(twins.before), edited: toLimitFields(limits) },
      keys: [kept.entry, edited.entry],
      bans: { after, within: seconds(withinMs), for: seconds(forMs), max: seconds(maxMs) },
      upstream: { url: 'http://127.0.0.1:1' },
      admin: { host: '127.0.0.1', port: 0, tokens: [entry] },
    });
  let nowMs = twins.startMs;
  const gateway = createGateway({ settings: await settings(twins.before), log, nowMs: () => nowMs });
  const { listen, admin } = await gateway.start();
  const refused: [number, number] = [0, 0];
  const builders = [new KeyMinutesBuilder(), new KeyMinutesBuilder()] as const;
  let readUntilMs = twins.startMs - 1;
  let fromMinute = 0;
  try {
    for (const [index, { pauseMs, requests }] of twins.steps.entries()) {
      // A record in memory covers one day.
      if (pauseMs > dayMs / 2) await readRecord();
      nowMs += pauseMs;
      if (index === twins.editAt) {
        if (index > 0) nowMs = (Math.floor(nowMs / minuteMs) + 1) * minuteMs;
        else nowMs = Math.ceil(nowMs / minuteMs) * minuteMs;
        fromMinute = nowMs / minuteMs;
        gateway.reload(await settings(twins.after));
      }
      const ask = async ({ secret }: { secret: string }, twin: 0 | 1) => {
        const url = `http://127.0.0.1:${listen.port}/v1/nothing`;
        const response = await fetch(url, { headers: { authorization: `Bearer ${secret}` } });
        await response.arrayBuffer();
        if (response.status === 429) refused[twin] += 1;
      };
      await Promise.all(Array.from({ length: requests }, () => [ask(kept, 0), ask(edited, 1)]).flat());
    }
    await readRecord();
  } finally {
    await gateway.drain({ graceMs: 0 });
  }
  const limitSteps = [{ fromMinute: 0, present: twins.before, edited: twins.after }];
  return {
    ...twins,
    kept: builders[0].finish(),
    edited: builders[1].finish(),
    refused,
    fromMinute,
    limitSteps,
  };

  async function readRecord(): Promise<void> {
    for (const [twin, id] of ['kept', 'edited'].entries()) {
      const fromMs = Math.max(readUntilMs + 1, nowMs - dayMs);
      const period = `from=${new Date(fromMs).toISOString()}&to=${new Date(nowMs).toISOString()}`;
      const { body } = await askAdmin(admin.port, `/api/v1/keys/${id}/usage?step=minute&${period}`, {
        token,
      });
      for (const { at, admitted, refused: byWindow, banned, undecided = 0 } of body.rows) {
        const figures: Record<string, number> = { admitted, banned, undecided, ...byWindow };
        for (const [number, outcome] of outcomes.entries()) {
          if (figures[outcome]) builders[twin]?.add(Date.parse(at) / minuteMs, number, figures[outcome]);
        }
      }
    }
    // The next read of the record starts after the last minute that was read. The clock therefore moves to the end of the current minute.
    nowMs = Math.ceil((nowMs + 1) / minuteMs) * minuteMs;
    readUntilMs = nowMs - 1;
  }
}

/**
 * Records the twin keys without a gateway, by calling the decision rule directly. A case takes microseconds, so thousands of random cases
 * are possible.
 */
export function decideTwins(twins: Twins): TwinsRecorded {
  const builders = [new KeyMinutesBuilder(), new KeyMinutesBuilder()] as const;
  const states: [QuotaState, QuotaState] = [emptyQuotaState, emptyQuotaState];
  const refused: [number, number] = [0, 0];
  let nowMs = twins.startMs;
  let fromMinute = Number.POSITIVE_INFINITY;
  let step: EditedStep = { fromMinute: 0, present: twins.before, edited: twins.after };
  const limitSteps = [step];
  for (const [index, { pauseMs, requests, units = 1 }] of twins.steps.entries()) {
    nowMs += pauseMs;
    const change = twins.changes?.findLast(({ at }) => at === index);
    if (index === twins.editAt || change !== undefined) nowMs = Math.ceil((nowMs + 1) / minuteMs) * minuteMs;
    if (index === twins.editAt) fromMinute = nowMs / minuteMs;
    if (change !== undefined) {
      step = { fromMinute: nowMs / minuteMs, present: change.before, edited: change.after };
      limitSteps.push(step);
    }
    for (const twin of [0, 1] as const) {
      const limits = twin === 1 && index >= twins.editAt ? step.edited : step.present;
      const call = { keyId: '', limits, bans: twins.bans, runs: oneRun(requests, units) };
      const outcome = decideKey(states[twin], call, calendarWindowsMs, nowMs);
      states[twin] = outcome.state;
      refused[twin] += outcome.refused + outcome.banned;
      const [run] = decidedRuns(call, outcome, { source: 'memory', windowsMs: calendarWindowsMs });
      const byOutcome = new Map<number, number>();
      for (let request = 0; request < requests; request++) {
        const decision = decisionAt(request, run as DecidedRun);
        const number = outcomes.indexOf(outcomeOf(decision) ?? 'undecided');
        byOutcome.set(number, (byOutcome.get(number) ?? 0) + 1);
      }
      for (const [number, count] of byOutcome) {
        const [extra, free] = units === 0 ? [0, count] : [count * (units - 1), 0];
        builders[twin].add(Math.floor(nowMs / minuteMs), number, count, extra, free);
      }
    }
  }
  return {
    ...twins,
    kept: builders[0].finish(),
    edited: builders[1].finish(),
    refused,
    fromMinute,
    limitSteps,
  };
}

const max = (most: number) => fc.option(fc.integer({ min: 1, max: most }), { nil: undefined });

/** The limits are small, so that a few requests exhaust each window. */
export const limits = fc
  .record({ second: max(4), minute: max(8), hour: max(20), day: max(30), month: max(50) })
  .map((stated) =>
    planWindows.flatMap((window) => {
      const limit = stated[window];
      // A limit per second makes the replay inexact, so such limits are rare in the test cases.
      return limit === undefined || (window === 'second' && limit > 1) ? [] : [{ window, max: limit }];
    }),
  )
  .filter((stated) => stated.length > 0);

export const bans = fc.record({
  after: fc.constantFrom(1_000, 1_000, 2, 5),
  withinMs: fc.constantFrom(1_000, 30_000, 60_000, 150_000),
  forMs: fc.constantFrom(1_000, 45_000, 120_000),
  maxMs: fc.constantFrom(120_000, 600_000),
});

const step = fc.record({
  pauseMs: fc.constantFrom(
    0,
    1,
    999,
    1_000,
    20_000,
    59_999,
    60_000,
    61_000,
    600_000,
    3_600_000,
    dayMs,
    10 * dayMs,
  ),
  requests: fc.integer({ min: 1, max: 12 }),
});

const mixedStep = fc
  .record({ step, units: fc.constantFrom(0, 1, 1, 2, 5), requests: fc.integer({ min: 1, max: 4 }) })
  .map(({ step: { pauseMs }, units, requests }) => ({ pauseMs, requests, units }));

/** Times around the ends of months with 28 and 31 days. */
const twinsOf = (steps: fc.Arbitrary<Step>): fc.Arbitrary<Twins> =>
  fc
    .record({
      before: limits,
      after: limits,
      bans,
      startMs: fc
        .tuple(fc.constantFrom(Date.UTC(2026, 1, 1), Date.UTC(2026, 2, 1)), fc.integer({ min: -20, max: 1 }))
        .map(([monthMs, minutes]) => monthMs + minutes * minuteMs),
      steps: fc.array(steps, { minLength: 2, maxLength: 16 }),
      editAt: fc.integer({ min: 0, max: 4 }),
    })
    .map((one) => ({ ...one, editAt: Math.min(one.editAt, one.steps.length - 1) }));

export const twins = twinsOf(step);

/** Requests that cost 0, 1, 2 and 5 units. */
export const mixedTwins = twinsOf(mixedStep);

/** Limits that change several times, before and after the edit. */
export const changing = (cases: fc.Arbitrary<Twins>): fc.Arbitrary<Twins> =>
  fc
    .tuple(
      cases,
      fc.array(fc.record({ at: fc.integer({ min: 0, max: 8 }), before: limits, after: limits }), {
        maxLength: 4,
      }),
    )
    .map(([one, changes]) => ({ ...one, changes }));
