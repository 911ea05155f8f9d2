import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { QuotaCall } from '../../../gateway/quota/decide-key.ts';
import { createKeyLedger } from '../../../gateway/request/limit/key-ledger.ts';
import { createKeyLimiter } from '../../../gateway/request/limit/key-limiter.ts';
import { createMemoryQuotaStore } from '../../../gateway/request/limit/store/memory-quota-store.ts';
import type { QuotaReply } from '../../../gateway/request/limit/store/quota-store.ts';
import { createStoreClock } from '../../../gateway/request/limit/store/store-clock.ts';
import type { StoreHealth } from '../../../gateway/request/limit/store/store-health.ts';
import type { BanPolicy, Decision, Key, Limits } from '../../../gateway/shared/model.ts';
import type { Bounds } from '../../../gateway/shared/timeouts-and-sizes.ts';
import * as arbitrary from '../../quota/arbitraries.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { decideCosts, keyWith, outcomeIn } from './limiter-fixture.ts';

/** Short windows, and one long window, so that the counts of no key expire. */
const windowsMs = { second: 20, minute: 50, hour: 100, day: 400, month: 900_000 };
const startMs = 1_000_000;

/** How the store replies to a process. `lost`: it runs the call, but the reply is lost. `unrun`: it does not run the call. */
const manners = ['replies', 'away', 'lost', 'unrun'] as const;

const withMonth = arbitrary.limits.map(
  (limits): Limits => [
    ...limits.filter(({ window, group }) => window !== 'month' && group === undefined),
    ...limitsOf({ perMonth: 90 }),
    ...limits.filter(({ group }) => group !== undefined),
  ],
);

const step = fc.record({
  pauseMs: fc.constantFrom(0, 0, 0, 0, 0, 1, 3, 25),
  process: fc.nat({ max: 2 }),
  does: fc.constantFrom(
    ...Array<'decide'>(16).fill('decide'),
    ...(['lift', 'reset', 'edit', 'store', 'store', 'store'] as const),
  ),
  costs: fc.array(fc.constantFrom(1, 1, 1, 2, 3, 5, 0), { minLength: 1, maxLength: 8 }),
  manner: fc.constantFrom(...manners),
  /** The limits of the plan or of the trial are divided by this number. */
  editedBy: fc.integer({ min: 1, max: 3 }),
  edits: fc.constantFrom('plan', 'trial'),
});

it.each([
  [
    'one process, which also refuses requests from memory',
    1,
    { refusalRememberedMs: 60, banRepeatedMs: 15, strikesHeldShareMax: 0.5 },
  ],
])('a trial decides as a second fleet, and the plan as without the trial: %s', async (_, count, bounds) => {
  const isOne = count === 1;
  await fc.assert(
    fc.asyncProperty(
      withMonth,
      withMonth,
      arbitrary.bans,
      fc.array(step, { minLength: 30, maxLength: 40 }),
      async (plan, trial, policy, steps) => {
        const clock = { nowMs: startMs };
        const fleets = Array.from({ length: 3 }, () => openFleet(count, clock, bounds));
        // A refusal that a process reports later counts from the time of the report.
        const bans = isOne ? { ...policy, withinMs: 1_000_000 } : policy;
        let [limits, ofTrial] = [plan, trial];
        for (const { pauseMs, process, does, costs, manner, editedBy, edits } of steps) {
          clock.nowMs += pauseMs;
          if (does === 'decide') {
            const keys = [
              keyWith(limits, ofTrial, keyId),
              keyWith(ofTrial, undefined, keyId),
              keyWith(limits, undefined, keyId),
            ];
            // The gateway decides a request twice that costs more than a limit, which would change the order of a turn.
            const isDear = costs.some((cost) => [...limits, ...ofTrial].some(({ max }) => max < cost));
            for (const turn of isDear ? costs.map((cost) => [cost]) : [costs]) {
              const [a = [], b = [], c = []] = await Promise.all(
                fleets.map((fleet, at) => fleet[process % count]?.decide(keys[at] as Key, turn, bans)),
              );
              // A process repeats its last decision on a banned key, with the figures of that decision. The time to retry depends on which
              // later requests were decided in the same call.
              const figures = ({ trial: _, ...decision }: Decision) => {
                if (isOne && decision.kind === 'banned') return 'banned';
                return decision.kind === 'refused' ? { ...decision, retryAtMs: 0 } : decision;
              };
              expect(a.map(figures)).toEqual(c.map(figures));
              expect(a.map((decision) => decision.trial)).toEqual(
                b.map((one, at) => outcomeIn(one, turn[at] ?? 1)),
              );
            }
          } else if (does === 'edit') {
            const edited = (of: Limits) =>
              of.map((limit) => ({ ...limit, max: Math.ceil(limit.max / editedBy) }));
            if (edits === 'plan') limits = edited(plan);
            else ofTrial = edited(trial);
          } else if (does !== 'store') {
            for (const fleet of fleets) await fleet[process % count]?.change(does, bans);
          } else if (!isOne) {
            for (const fleet of fleets) await fleet[process]?.setManner(manner);
          }
        }
      },
    ),
    { numRuns: 120 },
  );
});

/** Processes that share a store in memory. */
function openFleet(count: number, clock: { readonly nowMs: number }, tuning: Partial<Bounds>) {
  const bounds = tunedBounds({ ...tuning, windowsMs });
  const nowMs = () => clock.nowMs;
  const store = createMemoryQuotaStore({ nowMs, bounds });
  return Array.from({ length: count }, () => {
    let manner: (typeof manners)[number] = 'replies';
    const part = { available: () => manner !== 'away', succeeded: () => {}, failed: () => {} };
    const health: StoreHealth = {
      started: Promise.resolve(),
      reach: () => (manner === 'away' ? 'none' : 'all'),
      partOf: () => part,
      divide: (calls) => [{ part, calls }],
    };
    const decide = async (calls: readonly QuotaCall[]): Promise<readonly QuotaReply[]> => {
      const failed = { kind: 'failed', mayHaveRun: manner === 'lost', reason: 'test' } as const;
      const replies = manner === 'unrun' ? [] : await store.decide(calls);
      return manner === 'replies' ? replies : calls.map(() => failed);
    };
    const limiter = createKeyLimiter({
      store: { ...store, decide },
      ...{ source: 'shared', health, ledger: createKeyLedger(bounds), clock: createStoreClock(nowMs), nowMs },
      ...{ onFailure: 'local', onDecidedAlone: () => {}, onUnusable: () => {}, leaksReadMs: () => 0 },
      ...{ bans: { observe: () => {} }, thresholds: { observe: () => {} }, bounds },
    });
    return {
      /** Decides requests in one turn of the event loop. */
      decide: (key: Key, costs: readonly number[], bans: BanPolicy) => decideCosts(limiter, key, costs, bans),
      async setManner(next: typeof manner): Promise<void> {
        manner = next;
        if (manner !== 'away') await limiter.report();
      },
      async change(verb: 'lift' | 'reset', bans: BanPolicy) {
        const reply = await store.adjust(
          keyId,
          verb === 'lift' ? { lift: true, bans } : { reset: true, bans },
        );
        if (reply.kind === 'changed') limiter.forget(keyId, reply.state);
      },
    };
  });
}

const keyId = 'acme';
