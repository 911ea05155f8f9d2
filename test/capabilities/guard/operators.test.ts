import { expect, it } from 'vitest';
import { stateOf } from '../../../gateway/capabilities/guard/operators/operators.ts';
import { limitsOf } from '../../support/limits-of.ts';

it('a reverted plan is a reason and a fault, and a member of /readyz', () => {
  const plan = { name: 'free', isCustom: false, limits: limitsOf({ perMinute: 60 }), operations: undefined };
  const edit = limitsOf({ perMinute: 40, perDay: 900 });
  const reverted = { sinceMs: Date.parse('2026-11-24T06:00:00Z'), requests: 4_100, refused: 132, edit };
  const since = '2026-11-24T06:00:00.000Z';
  const change = '(40 → 60 a minute, 900 → no limit a day)';
  const why = 'because the edit refused 132 of 4,100 requests (3.2 %) in ten minutes';
  expect(stateOf(new Map([['free', { ...plan, reverted }]]))).toEqual({
    members: {
      revertedPlans: [
        {
          ...{ plan: 'free', since, requests: 4_100, refused: 132 },
          edit: { perMinute: 40, perDay: 900 },
          inForce: { perMinute: 60 },
        },
      ],
    },
    reasons: [`plan free is guarded: its limits from before the edit apply since ${since} ${change}, ${why}`],
    faults: [
      {
        severity: 'warning',
        code: 'plan_reverted',
        text: `The guard of plan free returned it to its earlier limits ${change}, ${why}. To try the edit again, run tollgate plans retry free.`,
        sinceAt: since,
      },
    ],
  });
  expect(stateOf(new Map([['free', plan]]))).toEqual({
    members: { revertedPlans: [] },
    reasons: [],
    faults: [],
  });
});
