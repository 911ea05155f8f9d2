import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createKeyLedger } from '../../../gateway/request/limit/key-ledger.ts';
import { createKeyLimiter } from '../../../gateway/request/limit/key-limiter.ts';
import { createMemoryQuotaStore } from '../../../gateway/request/limit/store/memory-quota-store.ts';
import { createStoreClock } from '../../../gateway/request/limit/store/store-clock.ts';
import type { StoreHealth } from '../../../gateway/request/limit/store/store-health.ts';
import type { BanPolicy, Decision, Key, Limits } from '../../../gateway/shared/model.ts';
import * as arbitrary from '../../quota/arbitraries.ts';
import { limitsOf } from '../../support/limits-of.ts';
import { tunedBounds } from '../../support/tuned-bounds.ts';
import { decideCosts, keyWith, outcomeIn } from './limiter-fixture.ts';

/** Short windows, and one long window, so that the counts of no key expire. */
const windowsMs = { second: 20, minute: 50, hour: 100, day: 400, month: 900_000 };
const startMs = 1_000_000;

const withMonth = arbitrary.limits.map(
  (limits): Limits => [
    ...limits.filter(({ window, group }) => window !== 'month' && group === undefined),
    ...limitsOf({ perMonth: 90 }),
    ...limits.filter(({ group }) => group !== undefined),
  ],
);

const step = fc.record({
  pauseMs: fc.constantFrom(0, 0, 0, 0, 0, 1, 3, 25),
  does: fc.constantFrom(...Array<'decide'>(16).fill('decide'), ...(['lift', 'reset', 'edit'] as const)),
  costs: fc.array(fc.constantFrom(1, 1, 1, 2, 3, 5, 0), { minLength: 1, maxLength: 8 }),
  /** The limits of the plan or of the trial are divided by this number. */
  editedBy: fc.integer({ min: 1, max: 3 }),
  edits: fc.constantFrom('plan', 'trial'),
});

/** A process that also refuses requests from memory. */
const tuning = { refusalRememberedMs: 60, banRepeatedMs: 15, strikesHeldShareMax: 0.5 };

it('a trial decides as the plan of a second gateway, and the plan as without the trial', async () => {
  await fc.assert(
    fc.asyncProperty(
      withMonth,
      withMonth,
      arbitrary.bans,
      fc.array(step, { minLength: 30, maxLength: 40 }),
      async (plan, trial, policy, steps) => {
        const clock = { nowMs: startMs };
        const gateways = Array.from({ length: 3 }, () => openGateway(clock));
        // A refusal that a process reports later counts from the time of the report.
        const bans = { ...policy, withinMs: 1_000_000 };
        let [limits, ofTrial] = [plan, trial];
        for (const { pauseMs, does, costs, editedBy, edits } of steps) {
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
                gateways.map((gateway, at) => gateway.decide(keys[at] as Key, turn, bans)),
              );
              // A process repeats its last decision on a banned key, with the figures of that decision. The time to retry depends on which
              // later requests were decided in the same call.
              const figures = ({ trial: _, ...decision }: Decision) => {
                if (decision.kind === 'banned') return 'banned';
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
          } else {
            for (const gateway of gateways) await gateway.change(does, bans);
          }
        }
      },
    ),
    { numRuns: 120 },
  );
});

/** A process with its own store in memory. */
function openGateway(clock: { readonly nowMs: number }) {
  const bounds = tunedBounds({ ...tuning, windowsMs });
  const nowMs = () => clock.nowMs;
  const store = createMemoryQuotaStore({ nowMs, bounds });
  const part = { available: () => true, succeeded: () => {}, failed: () => {} };
  const health: StoreHealth = {
    started: Promise.resolve(),
    reach: () => 'all',
    partOf: () => part,
    divide: (calls) => [{ part, calls }],
  };
  const limiter = createKeyLimiter({
    store,
    ...{ source: 'shared', health, ledger: createKeyLedger(bounds), clock: createStoreClock(nowMs), nowMs },
    ...{ onFailure: 'local', onDecidedAlone: () => {}, onUnusable: () => {}, leaksReadMs: () => 0 },
    ...{ bans: { observe: () => {} }, thresholds: { observe: () => {} }, bounds },
  });
  return {
    /** Decides requests in one turn of the event loop. */
    decide: (key: Key, costs: readonly number[], bans: BanPolicy) => decideCosts(limiter, key, costs, bans),
    async change(verb: 'lift' | 'reset', bans: BanPolicy) {
      const reply = await store.adjust(keyId, verb === 'lift' ? { lift: true, bans } : { reset: true, bans });
      if (reply.kind === 'changed') limiter.forget(keyId, reply.state);
    },
  };
}

const keyId = 'acme';
