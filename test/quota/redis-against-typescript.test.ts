import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { adjust, type Change } from '../../gateway/quota/adjust.ts';
import { banOf, noBan, type SideCounts } from '../../gateway/quota/bans.ts';
import {
  decideKey,
  type QuotaCall,
  type QuotaOutcome,
  type TrialDecided,
} from '../../gateway/quota/decide-key.ts';
import { unendedGrant } from '../../gateway/quota/grants.ts';
import { emptyQuotaState, expiresMs, type QuotaState } from '../../gateway/quota/hash.ts';
import { freeSlots, type Lease, renewLease } from '../../gateway/quota/leases.ts';
import { confirmTold, type Told, type ToldMark, thresholdWindows } from '../../gateway/quota/thresholds.ts';
import type { Unsent } from '../../gateway/quota/unsent.ts';
import {
  fieldOf,
  numberOf,
  openWindows,
  usedFieldOf,
  usedOf,
  windowOf,
} from '../../gateway/quota/windows.ts';
import type { QuotaReply, QuotaStore } from '../../gateway/request/limit/store/quota-store.ts';
import { createRedisQuotaStore } from '../../gateway/request/limit/store/redis-quota-store.ts';
import { noCounts, type WindowsMs } from '../../gateway/shared/calendar-windows.ts';
import {
  type BanPolicy,
  type Grant,
  type Limits,
  type PlanWindow,
  planWindows,
} from '../../gateway/shared/model.ts';
import { type RedisSubject, redisSubject } from '../contract/redis-subject.ts';
import { freshPrefix } from '../support/redis.ts';
import * as arbitrary from './arbitraries.ts';

let subject: RedisSubject;
beforeAll(async () => {
  subject = await redisSubject(createRedisQuotaStore);
});
afterAll(() => subject.close());

/** Windows of a few ms, so that a run crosses many boundaries on the clock of Redis. */
const windowsMs = { second: 5, minute: 10, hour: 20, day: 40, month: 400 };

const request = fc.record({
  pauseMs: fc.constantFrom(0, 0, 0, 1, 3, 5, 15),
  verb: fc.constantFrom(
    ...Array<'decide'>(9).fill('decide'),
    ...Array<'confirm'>(3).fill('confirm'),
    ...(['lift', 'reset', 'grant', 'ungrant'] as const),
  ),
  key: fc.nat({ max: 2 }),
  grant: fc.record({
    limits: arbitrary.grantedLimits,
    afterMs: fc.option(fc.integer({ min: -1, max: 40 }), { nil: undefined }),
    forMs: fc.integer({ min: -1, max: 60 }),
  }),
  mark: fc.record({
    window: fc.constantFrom(...thresholdWindows),
    group: fc.constantFrom(undefined, 'reports', 'big-2'),
    windowsBack: fc.constantFrom(0, 0, 0, 1),
    percent: fc.constantFrom(20, 75, 80, 100),
    ofOlderCounts: fc.constantFrom(false, false, false, true),
  }),
  /** The calls of one batch: calls for several keys, and several calls for one key. */
  calls: fc.array(
    fc.record({
      key: fc.nat({ max: 2 }),
      runs: arbitrary.runs,
      unsent: fc.option(arbitrary.unsent, { nil: undefined }),
      concurrency: fc.option(arbitrary.concurrency, { nil: undefined }),
    }),
    { minLength: 1, maxLength: 5 },
  ),
});

function rarely<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> {
  return fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
}

/** Mostly a few requests of a key. The trial mostly refuses requests that the plan admits. */
const fewRequests = fc.record({
  ...{ pauseMs: fc.constantFrom(0, 0, 1, 3, 5, 15), grant: request.map(({ grant }) => grant) },
  ...{ verb: fc.constantFrom(...Array<'decide'>(15).fill('decide'), 'lift' as const), key: fc.constant(0) },
  mark: request.map(({ mark }) => mark),
  calls: fc.array(
    fc.record({
      key: fc.constant(0),
      runs: fc
        .record({
          requests: fc.integer({ min: 0, max: 4 }),
          units: arbitrary.units,
          operation: fc.constantFrom(undefined, 'export', 'create'),
        })
        .map((run) => (run.requests === 0 ? [] : [run])),
      unsent: rarely(arbitrary.unsent),
      concurrency: rarely(arbitrary.concurrency),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});

it.each([
  ['any requests', request, arbitrary.triedLimits],
  ['few requests', fewRequests, arbitrary.smallTrials],
] satisfies [string, typeof request, typeof arbitrary.triedLimits][])(
  'the scripts in Redis and the pure functions decide, try, lift, reset, grant and confirm alike in every sequence of %s',
  async (_, step, tried) => {
    const store = await subject.open(windowsMs);
    await fc.assert(
      fc.asyncProperty(
        fc.array(tried, { minLength: 1, maxLength: 2 }),
        arbitrary.bans,
        arbitrary.thresholds,
        fc.array(step, { maxLength: 25 }),
        async (plans, bans, thresholds, sequence) => {
          const prefix = freshPrefix();
          const models: Readonly<QuotaState>[] = Array(3).fill(emptyQuotaState);
          const leases: (readonly Lease[])[] = [[], [], []];
          const modelOf = (key: number) => models[key] ?? emptyQuotaState;
          for (const [index, { pauseMs, verb, key, calls, grant, mark }] of sequence.entries()) {
            if (pauseMs > 0) await sleep(pauseMs);
            if (verb === 'confirm') {
              const told = await confirmOnce(store, `${prefix}-${key}`, mark);
              models[key] = { ...modelOf(key), told };
              continue;
            }
            if (verb !== 'decide') {
              const changes = {
                lift: { lift: true, bans },
                reset: { reset: true, bans },
                grant: { grant: toGrant(grant, await subject.nowMs()) },
                ungrant: { grant: 'none' },
              } satisfies Record<typeof verb, Change>;
              const changed = await store.adjust(`${prefix}-${key}`, changes[verb]);
              if (changed.kind !== 'changed') throw new Error(changed.reason);
              const expected = pastOrPresent(modelOf(key), bans, changed.nowMs).map((before) =>
                opened(adjust(before, changes[verb], changed.nowMs).state, windowsMs, changed.nowMs),
              );
              expect(expected).toContainEqual(opened(changed.state, windowsMs, changed.nowMs));
              models[key] = changed.state;
              continue;
            }
            const sent = calls.map(({ key, runs, unsent, concurrency }) => ({
              key,
              runs,
              // Each key has a different plan, and gets another plan every five steps.
              ...(plans[(key + Math.floor(index / 5)) % plans.length] ?? { limits: [] }),
              keyId: `${prefix}-${key}`,
              bans,
              thresholds,
              unsent: unsent && toUnsent(unsent, modelOf(key)),
              concurrency,
            }));
            const replies = await store.decide(sent);
            for (const [at, { key, ...call }] of sent.entries()) {
              const { concurrency, limits, trial } = call as QuotaCall;
              const actual = inReply(outcomeOf(replies[at]), limits, trial);
              const held = leases[key] ?? [];
              const slots = concurrency && freeSlots(held, concurrency, actual.nowMs);
              const expected = pastOrPresent(modelOf(key), bans, actual.nowMs).map((before) =>
                inReply(decideKey(before, call, windowsMs, actual.nowMs, slots), limits, trial),
              );
              expect(expected).toContainEqual(actual);
              models[key] = afterCall(modelOf(key), call, actual);
              if (concurrency) leases[key] = renewLease(held, concurrency, actual.admitted, actual.nowMs);
            }
          }
        },
      ),
      { numRuns: 100, interruptAfterTimeLimit: 8_000 },
    );
  },
);

it('a grant that ends within the millisecond is in the reply to its own command', async () => {
  const store = await subject.open(windowsMs);
  const prefix = freshPrefix();
  const limits = [{ window: 'minute', max: 3 }] as const;
  for (let at = 0; at < 2_000; at += 1) {
    const grant = { limits, untilMs: (await subject.nowMs()) + 1 };
    const changed = await store.adjust(`${prefix}-${at}`, { grant });
    if (changed.kind !== 'changed') throw new Error(changed.reason);
    expect(changed.state.grant).toEqual(unendedGrant(grant, changed.nowMs));
  }
});

/**
 * Confirms a threshold, and compares the key's counts before and after with the pure function. The counts of windows of a few ms may expire
 * meanwhile.
 *
 * @returns the reported thresholds of the key after the confirmation
 */
async function confirmOnce(
  store: QuotaStore,
  keyId: string,
  {
    windowsBack,
    ofOlderCounts,
    ...rest
  }: Omit<ToldMark, 'index' | 'resetMs'> & {
    windowsBack: number;
    ofOlderCounts: boolean;
  },
): Promise<Told | undefined> {
  const before = await storedState(store, keyId);
  const number = numberOf(before, rest);
  const index = number - windowsBack;
  const mark = { ...rest, index, resetMs: before.resetMs - (ofOlderCounts ? 1 : 0) };
  const expected = confirmTold(before, mark);
  const reply = await store.confirmTold(keyId, mark);
  if (reply.kind === 'failed') throw new Error(reply.reason);
  const after = await storedState(store, keyId);
  const isExpired = numberOf(after, rest) !== number;
  if (!isExpired) {
    // The counts of a key without requests are not in Redis, so a mark for window 0 is not stored.
    const isStored = expected !== undefined && number > 0;
    expect([reply.isStored, after.told]).toEqual([isStored, isStored ? expected : before.told]);
  }
  return after.told;
}

async function storedState(store: QuotaStore, keyId: string): Promise<Readonly<QuotaState>> {
  const read = await store.read([keyId]);
  const state = read.kind === 'read' ? read.states[0] : undefined;
  if (state === undefined) throw new Error(`no counts: ${JSON.stringify(read)}`);
  return state;
}

function outcomeOf(reply: QuotaReply | undefined): QuotaOutcome {
  if (reply?.kind !== 'decided') throw new Error(`no decision: ${JSON.stringify(reply)}`);
  return reply.outcome;
}

/** The possible states in Redis: the model's state, or this state without the parts that may have expired. */
function pastOrPresent(model: Readonly<QuotaState>, bans: BanPolicy, nowMs: number): Readonly<QuotaState>[] {
  const before = [model];
  if (nowMs >= expiresMs(model, bans, windowsMs)) before.push(emptyQuotaState);
  const withoutBan = { ...model, bannedUntilMs: 0, banLevel: 0 };
  if (nowMs >= model.bannedUntilMs + bans.maxMs) before.push(withoutBan);
  if (nowMs >= Math.max(model.bannedUntilMs, model.liftedMs) + bans.maxMs) {
    before.push({ ...withoutBan, liftedMs: 0, resetMs: 0 });
  }
  return before;
}

/**
 * Returns the state with the windows that are open at `nowMs`, and without an expired grant. If a decision only
 * opens new windows, Redis stores nothing.
 */
function opened(state: Readonly<QuotaState>, windowsMs: WindowsMs, nowMs: number): QuotaState {
  // The mark of an ended window may still be in Redis.
  const all = Object.keys(state).flatMap((field) => {
    const window = windowOf(field);
    return window === undefined ? [] : [{ ...window, max: 1 }];
  });
  const open = { ...state, grant: unendedGrant(state.grant, nowMs), told: undefined };
  openWindows(open, all, windowsMs, nowMs);
  const trial = state.trial && withoutUnusedGroups(state.trial);
  return { ...withoutUnusedGroups(open), ...(trial && { trial }) };
}

/** Redis has no fields for a group in which nothing was charged. */
function withoutUnusedGroups<Side extends SideCounts>(state: Readonly<Side>): Side {
  const isUnused = (field: string) => {
    const window = field.includes(':') ? windowOf(field.replace(/Used$/, '')) : undefined;
    return window !== undefined && usedOf(state, window) === 0;
  };
  return Object.fromEntries(Object.entries(state).filter(([field]) => !isUnused(field))) as unknown as Side;
}

/** Returns the counts that Redis has stored after a call. Requests of a banned key change nothing, so nothing is stored. */
function afterCall(before: Readonly<QuotaState>, call: QuotaCall, actual: QuotaOutcome): QuotaState {
  const changes = ({ admitted, refused, state }: TrialDecided, ofSide: Readonly<SideCounts> | undefined) =>
    admitted + refused > 0 || state.bannedUntilMs !== (ofSide?.bannedUntilMs ?? 0);
  const { limits, trial, unsent, concurrency } = call;
  const isStored =
    unsent !== undefined ||
    concurrency !== undefined ||
    changes(actual, before) ||
    (actual.trial !== undefined && changes(actual.trial, before.trial));
  const ofTrial = isStored && actual.trial && trial ? countsIn(actual.trial.state, trial) : undefined;
  const storedTrial = ofTrial ? { ...noSide, ...before.trial, ...ofTrial } : before.trial;
  return { ...before, ...onlyOf(actual.state, limits), ...(storedTrial && { trial: storedTrial }) };
}

/**
 * Returns the outcome in the form of the reply, which leaves out windows without a limit. The reply contains `told` only if a threshold is
 * reached, and the thresholds of the outcome show the same.
 */
function inReply({ trial, ...outcome }: QuotaOutcome, limits: Limits, ofTrial: Limits = []): QuotaOutcome {
  const limited = (state: Readonly<QuotaState>, to: Limits): QuotaState => ({
    ...{ ...withoutGroups(state), ...noCounts, ...onlyOf(state, to) },
    ...{ told: undefined, trial: undefined },
  });
  return {
    ...outcome,
    state: limited(outcome.state, limits),
    ...(trial && { trial: { ...trial, state: limited(trial.state, ofTrial) } }),
  };
}

function withoutGroups(state: Readonly<QuotaState>): QuotaState {
  const plain = Object.entries(state).filter(([field]) => !field.includes(':'));
  return Object.fromEntries(plain) as unknown as QuotaState;
}

function onlyOf(
  state: Readonly<QuotaState>,
  limits: Limits,
): SideCounts & Pick<QuotaState, 'liftedMs' | 'resetMs' | 'grant'> {
  const { liftedMs, resetMs, grant } = state;
  return { ...countsIn(state, limits), liftedMs, resetMs, grant };
}

const noSide: SideCounts = { ...noCounts, ...noBan };

/** The strikes, the ban, and the counts of the limited windows. */
function countsIn(state: Readonly<SideCounts>, limits: Limits): SideCounts {
  const windows = limits.flatMap((limit) => [
    [fieldOf(limit), numberOf(state, limit)],
    [usedFieldOf(limit), usedOf(state, limit)],
  ]);
  return { ...Object.fromEntries(windows), ...banOf(state) };
}

function toGrant(
  { limits, afterMs, forMs }: { limits: Limits; afterMs: number | undefined; forMs: number },
  nowMs: number,
): Grant {
  return { limits, ...(afterMs !== undefined && { fromMs: nowMs + afterMs }), untilMs: nowMs + forMs };
}

function toUnsent(
  relative: typeof arbitrary.unsent extends fc.Arbitrary<infer T> ? T : never,
  state: Readonly<QuotaState>,
): Unsent {
  const { windowsBack, used, ofOlderBans, ofOlderCounts, strikes, bannedForMs, banLevel } = relative;
  const windows = ['', 'reports:', 'big-2:'].flatMap((group) =>
    planWindows.flatMap((window) => [
      [`${group}${window}`, (state[`${group}${window}` as PlanWindow] ?? 0) - windowsBack],
      [`${group}${window}Used`, used],
    ]),
  );
  return {
    ...noCounts,
    ...Object.fromEntries(windows),
    ...{ strikes, bannedUntilMs: Math.max(0, state.bannedUntilMs + bannedForMs), banLevel },
    liftedMs: state.liftedMs - (ofOlderBans ? 1 : 0),
    resetMs: state.resetMs - (ofOlderCounts ? 1 : 0),
  };
}
