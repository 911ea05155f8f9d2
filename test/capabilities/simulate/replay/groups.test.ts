import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  editBetween,
  edited,
  type LimitEdit,
} from '../../../../gateway/capabilities/simulate/replay/edits.ts';
import {
  refusedBounds,
  refusedByAnyGroup,
  replayGroups,
  unreplayableGroups,
} from '../../../../gateway/capabilities/simulate/replay/replay-groups.ts';
import { replayKey } from '../../../../gateway/capabilities/simulate/replay/replay-key.ts';
import { decideKey } from '../../../../gateway/quota/decide-key.ts';
import { emptyQuotaState, type QuotaState } from '../../../../gateway/quota/hash.ts';
import { type DecidedRun, decidedRuns, decisionAt } from '../../../../gateway/request/limit/decision-at.ts';
import { calendarWindowsMs } from '../../../../gateway/shared/calendar-windows.ts';
import { ofAllOperations } from '../../../../gateway/shared/limits.ts';
import type { Limits } from '../../../../gateway/shared/model.ts';
import { withRefused } from '../../../../gateway/usage/read/key-minutes.ts';
import { createUsage } from '../../../../gateway/usage/usage.ts';
import { limitsOf } from '../../../support/limits-of.ts';
import { tunedBounds } from '../../../support/tuned-bounds.ts';
import { editedOnce } from './twin-keys.ts';

const minuteMs = 60_000;
const startMs = Date.UTC(2026, 10, 20, 12);
const fromMinute = Math.floor(startMs / minuteMs);
const calendar = { minuteMs, windowsMs: calendarWindowsMs };

const limits = fc
  .record({
    perHour: fc.integer({ min: 20, max: 60 }),
    reports: fc.record({
      perMinute: fc.integer({ min: 1, max: 8 }),
      perHour: fc.integer({ min: 5, max: 30 }),
    }),
    big: fc.record({ perMinute: fc.integer({ min: 1, max: 8 }) }),
  })
  .map(({ perHour, reports, big }) =>
    limitsOf({
      perHour,
      groups: {
        reports: { operations: ['export', 'create'], ...reports },
        big: { operations: ['create'], ...big },
      },
    }),
  );
const requests = fc.array(
  fc.record({
    afterMs: fc.constantFrom(0, 1_000, 5_000, 40_000),
    operation: fc.constantFrom('export', 'create', undefined),
  }),
  { maxLength: 150 },
);
const noBans = { after: 1_000_000, withinMs: 1, forMs: 1, maxMs: 1 };

/** Decides requests with the real limits, and records the decisions. */
async function recorded(of: Limits, sequence: typeof requests extends fc.Arbitrary<infer T> ? T : never) {
  let nowMs = startMs;
  const usage = createUsage({ keepDays: 8, minuteMs, nowMs: () => nowMs, bounds: tunedBounds({}) });
  let state: Readonly<QuotaState> = emptyQuotaState;
  const refusedBy: Record<string, number> = {};
  let refused = 0;
  for (const { afterMs, operation } of sequence) {
    nowMs += afterMs;
    const call = { keyId: 'acme', limits: of, bans: noBans, runs: [{ requests: 1, units: 1, operation }] };
    const outcome = decideKey(state, call, calendarWindowsMs, nowMs);
    ({ state } = outcome);
    const [run] = decidedRuns(call, outcome, { source: 'memory', windowsMs: calendarWindowsMs });
    const decision = decisionAt(0, run as DecidedRun);
    usage.recorder.decided('acme', decision, '192.0.2.1', '01234567');
    const group = decision.kind === 'refused' ? decision.rateLimit.inForce.group : undefined;
    if (decision.kind === 'refused') refused += 1;
    if (group !== undefined) refusedBy[group] = (refusedBy[group] ?? 0) + 1;
  }
  const period = { fromMs: startMs, toMs: nowMs };
  const minutes = (await usage.reader.minutes('acme', period, ['reports', 'big'])) ?? [];
  const [ofAll] = (await usage.reader.minutesOf(['acme'], period)) ?? [];
  await usage.close();
  return { minutes, refusedBy, refused, ofAll };
}

function replay(minutes: Awaited<ReturnType<typeof recorded>>['minutes'], present: Limits, then: Limits) {
  return replayGroups(
    {
      minutes,
      fromMinute,
      usedEarlier: new Map(),
      steps: [{ fromMinute: 0, present, edited: then }],
      present,
      edited: then,
    },
    calendar,
  );
}

it('a replay of the present limits of groups finds the recorded refusals, and tighter limits never refuse less', async () => {
  await fc.assert(
    fc.asyncProperty(limits, requests, fc.integer({ min: 1, max: 4 }), async (of, sequence, divisor) => {
      const { minutes, refusedBy } = await recorded(of, sequence);
      const now = replay(minutes, of, of);
      expect(now.map(({ refusedThen }) => refusedThen)).toEqual([refusedBy.reports ?? 0, refusedBy.big ?? 0]);
      const tighter = of.map((limit) =>
        limit.group === undefined ? limit : { ...limit, max: Math.ceil(limit.max / divisor) },
      );
      const then = replay(minutes, of, tighter);
      for (const [at, { refusedThen, refusedNow }] of then.entries()) {
        expect(refusedNow).toBe(now[at]?.refusedNow);
        expect(refusedThen).toBeGreaterThanOrEqual(refusedNow);
      }
    }),
    { numRuns: 100 },
  );
});

it('an edit of groups leads from the earlier limits to the later, and says which groups the record cannot replay', () => {
  const before = limitsOf({
    perDay: 10,
    groups: { a: { operations: ['x'], perMinute: 5 }, b: { operations: ['y'], perDay: 3 } },
  });
  const after = limitsOf({
    perDay: 10,
    groups: { a: { operations: ['x', 'y'], perMinute: 5 }, c: { operations: ['z'], perHour: 2 } },
  });
  const edit: LimitEdit = {
    groups: { a: { operations: ['x', 'y'] }, b: null, c: { operations: ['z'], hour: 2 } },
  };
  expect(editBetween(before, after)).toEqual(edit);
  expect(edited(before, edit)).toEqual(after);
  expect(unreplayableGroups(before, after)).toEqual(['a', 'c']);
  expect(editBetween(before, before)).toBeUndefined();
});

it('the bounds contain the refusals of the real limits after an edit', async () => {
  await fc.assert(
    fc.asyncProperty(limits, limits, requests, async (present, edited, sequence) => {
      const { minutes, ofAll } = await recorded(present, sequence);
      const { refused } = await recorded(edited, sequence);
      if (ofAll === undefined) throw new Error('the record was not read');
      const groups = {
        minutes,
        fromMinute,
        usedEarlier: new Map(),
        steps: [{ fromMinute: 0, present, edited }],
        present,
        edited,
      };
      const replayed = {
        minutes: withRefused(ofAll, refusedByAnyGroup(groups, calendar)),
        fromMinute,
        ...editedOnce(ofAllOperations(present), ofAllOperations(edited), noBans),
      };
      const alone = replayKey(replayed, calendar);
      const { least, most } = refusedBounds(alone, groups, calendar);
      expect(refused).toBeGreaterThanOrEqual(least);
      expect(refused).toBeLessThanOrEqual(most);
      expect(most).toBeLessThanOrEqual(sequence.length);
    }),
    { numRuns: 300 },
  );
});
