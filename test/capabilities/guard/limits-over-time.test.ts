import { describe, expect, it } from 'vitest';
import { toLimits } from '../../../gateway/keys/limits/limit-fields.ts';
import {
  change,
  free,
  type LimitsRow,
  minuteLimits,
  reload,
} from '../../admin/keys/limits-over-time-fixture.ts';

const ofPlan = (time: string, action: string, perMinute: number) =>
  change(time, { action, plan: 'free', limitsBefore: { plans: { free: { perMinute, perDay: 900 } } } });

describe('the minute limit of a key over time', () => {
  it.each<LimitsRow>([
    [
      'a guard reverted its plan, and an operator retried the edit',
      free,
      [
        reload('10:30', { plans: { free: { perMinute: 60 } } }),
        ofPlan('11:00', 'plan.reverted', 50),
        ofPlan('12:00', 'plan.retried', 60),
      ],
      ['10:00', 60, '10:30', 50, '11:00', 60, '12:00', 50],
    ],
    [
      'a guard reverted its plan until a scheduled change of the plan',
      { id: 'acme', plan: 'dated', limits: toLimits({ perMinute: 30 }) },
      [
        change('11:00', {
          ...{ action: 'plan.reverted', plan: 'dated', before: { perMinute: 20 }, after: { perMinute: 60 } },
          limitsBefore: { plans: { dated: { perMinute: 20 } } },
        }),
        reload('12:00', { plans: { pro: { perMinute: 1 } } }),
      ],
      ['10:00', 20, '11:00', 60, '13:00', 30],
    ],
    [
      'a guard reverted its plan, and a retry ended the revert before a scheduled change of the plan',
      { id: 'acme', plan: 'dated', limits: toLimits({ perMinute: 30 }) },
      [
        change('11:00', {
          ...{ action: 'plan.reverted', plan: 'dated', before: { perMinute: 20 }, after: { perMinute: 60 } },
          limitsBefore: { plans: { dated: { perMinute: 20 } } },
        }),
        change('12:00', {
          ...{ action: 'plan.retried', plan: 'dated', before: { perMinute: 60 }, after: { perMinute: 20 } },
          limitsBefore: { plans: { dated: { perMinute: 60 } } },
        }),
      ],
      ['10:00', 20, '11:00', 60, '12:00', 20, '13:00', 30],
    ],
  ])('%s', (_, key, changes, steps) => {
    expect(minuteLimits(key, changes)).toEqual(steps);
  });
});
