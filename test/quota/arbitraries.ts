import fc from 'fast-check';
import type { Concurrency } from '../../gateway/quota/leases.ts';
import type { Run } from '../../gateway/quota/runs.ts';
import { type BanPolicy, type Limits, planWindows } from '../../gateway/shared/model.ts';

/** Limits of all operations, for one or more windows, the shortest window first. */
const plainLimits: fc.Arbitrary<Limits> = fc
  .record(
    { second: max(6), minute: max(12), hour: max(20), day: max(30), month: max(40) },
    { requiredKeys: [] },
  )
  .filter((stated) => Object.keys(stated).length > 0)
  .map((stated) =>
    planWindows.flatMap((window) => {
      const limit = stated[window];
      return limit === undefined ? [] : [{ window, max: limit }];
    }),
  );

/** A group with one or two windows, and with one or both operations. */
const group: fc.Arbitrary<Limits> = fc
  .record({
    group: fc.constantFrom('reports', 'big-2'),
    operations: fc.constantFrom(['export'], ['create'], ['export', 'create']),
    windows: fc.subarray([...planWindows], { minLength: 1, maxLength: 2 }),
    most: max(12),
  })
  .map(({ windows, most, ...named }) =>
    windows.map((window, at) => ({ window, max: most * (at + 1), ...named })),
  );

/** Limits, and mostly no or few groups of operations. */
export const limits: fc.Arbitrary<Limits> = fc
  .tuple(plainLimits, fc.array(group, { maxLength: 2 }))
  .map(([plain, groups]) => [
    ...plain,
    ...groups.filter(([one], at) => groups.findIndex(([other]) => other?.group === one?.group) === at).flat(),
  ]);

/** Limits of a grant, which state only the names of groups. */
export const grantedLimits: fc.Arbitrary<Limits> = limits.map((all) =>
  all.map(({ operations: _, ...limit }) => limit),
);

/** The limits of a plan and of its trial. */
export interface PlanAndTrial {
  readonly limits: Limits;
  readonly trial: Limits | undefined;
}

/** Limits of a plan, and mostly the limits of its trial, which may have other windows. */
export const triedLimits: fc.Arbitrary<PlanAndTrial> = fc
  .tuple(limits, fc.option(limits, { nil: undefined, freq: 3 }))
  .map(([plan, trial]) => ({ limits: plan, trial }));

/** A plan with high limits, whose trial has few windows with low limits. */
export const smallTrials: fc.Arbitrary<PlanAndTrial> = fc
  .tuple(
    limits.map((all) => all.map((limit) => ({ ...limit, max: 20 * limit.max }))),
    fc.subarray([...planWindows], { minLength: 1, maxLength: 2 }),
    max(6),
  )
  .map(([plan, windows, max]) => ({ limits: plan, trial: windows.map((window) => ({ window, max })) }));

function max(most: number): fc.Arbitrary<number> {
  return fc.integer({ min: 1, max: most });
}

/** Rules that make bans short enough for a test of a few hundred ms. */
export const bans: fc.Arbitrary<BanPolicy> = fc.record({
  after: fc.integer({ min: 1, max: 8 }),
  withinMs: fc.integer({ min: 1, max: 60 }),
  forMs: fc.integer({ min: 1, max: 20 }),
  maxMs: fc.integer({ min: 20, max: 60 }),
});

/** The cost of a request, which is mostly 1. */
export const units: fc.Arbitrary<number> = fc.constantFrom(1, 1, 1, 2, 5, 0);

/** Requests of one operation and of equal cost. The cost in the trial mostly is the same. */
const run = (requests: fc.Arbitrary<number>): fc.Arbitrary<Run> =>
  fc.record({
    requests,
    units,
    trialUnits: fc.constantFrom(...Array<undefined>(8).fill(undefined), 0, 1, 5),
    operation: fc.constantFrom(undefined, undefined, 'export', 'create'),
  });

/** The runs of a call: one long run or none, and perhaps further runs. */
export const runs: fc.Arbitrary<readonly Run[]> = fc
  .tuple(
    run(fc.integer({ min: 0, max: 20 })),
    fc.option(fc.array(run(fc.integer({ min: 1, max: 5 })), { minLength: 1, maxLength: 6 }), { nil: [] }),
  )
  .map(([first, later]) => [first, ...later].filter(({ requests }) => requests > 0));

/** Percentages of a limit, mostly several. */
export const thresholds: fc.Arbitrary<readonly number[]> = fc
  .uniqueArray(fc.constantFrom(1, 20, 50, 75, 80, 99, 100), { maxLength: 4 })
  .map((percents) => percents.toSorted((one, other) => one - other));

/** Two processes with a few requests each, and leases that expire during a run. */
export const concurrency: fc.Arbitrary<Concurrency> = fc.record({
  max: fc.integer({ min: 1, max: 8 }),
  process: fc.constantFrom('one', 'other'),
  active: fc.nat({ max: 4 }),
  leaseMs: fc.constantFrom(4, 15, 1_000),
});

/**
 * Counts that a process has not sent yet. Each count belongs to the current or the previous window, and to the current or an older
 * generation.
 */
export const unsent = fc.record({
  windowsBack: fc.integer({ min: 0, max: 1 }),
  used: fc.integer({ min: 0, max: 5 }),
  ofOlderBans: fc.boolean(),
  ofOlderCounts: fc.boolean(),
  strikes: fc.integer({ min: 0, max: 10 }),
  bannedForMs: fc.integer({ min: -10, max: 30 }),
  banLevel: fc.integer({ min: 0, max: 4 }),
});
