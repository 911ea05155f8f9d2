import { describe, expect, it } from 'vitest';
import { limitsOverTime } from '../../../gateway/admin/keys/over-time/limits-over-time.ts';
import { toLimits } from '../../../gateway/keys/limits/limit-fields.ts';
import { compilePlans } from '../../../gateway/keys/plans/plans.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { startGateways } from './change/change-fixture.ts';
import {
  at,
  free,
  granted,
  type LimitsRow,
  minuteLimits,
  ofKey,
  own,
  reload,
} from './limits-over-time-fixture.ts';

describe('the minute limit of a key over time', () => {
  it.each<LimitsRow>([
    ['nothing changed', free, [], ['10:00', 50]],
    [
      'its plan was edited twice, another plan once',
      free,
      [
        reload('11:00', { plans: { free: { perMinute: 60 } } }),
        reload('12:00', { plans: { pro: { perMinute: 1 } } }),
        reload('13:00', { plans: { free: { perMinute: 40 } } }),
      ],
      ['10:00', 60, '11:00', 40, '13:00', 50],
    ],
    [
      'an edit before the period, one at its begin and one at its end',
      free,
      [
        reload('09:00', { plans: { free: { perMinute: 1 } } }),
        reload('10:00', { plans: { free: { perMinute: 2 } } }),
        reload('15:00', { plans: { free: { perMinute: 3 } } }),
      ],
      ['10:00', 3, '15:00', 50],
    ],
    [
      'its plan states changes for instants within, before and after the period, and was edited',
      { id: 'acme', plan: 'dated', limits: toLimits({ perMinute: 30 }) },
      [reload('10:30', { plans: { dated: { perMinute: 5 } } })],
      ['10:00', 5, '10:30', 20, '13:00', 30],
    ],
    [
      'the key states changes of its plan, and another plan of it was edited',
      free,
      [reload('12:30', { plans: { pro: { perMinute: 400 } } })],
      ['10:00', 7, '11:00', 400, '12:30', 500, '14:00', 50],
      {
        plan: 'own',
        limits: { perMinute: 7 },
        changes: [
          { from: '2026-11-24T11:00:00Z', plan: 'pro' },
          { from: '2026-11-24T14:00:00Z', plan: 'free' },
          { from: '2026-11-24T15:30:00Z', plan: 'pro' },
        ],
      },
    ],
    [
      'the plan had no limit a minute',
      free,
      [reload('11:00', { plans: { free: { perDay: 900 } } })],
      ['10:00', undefined, '11:00', 50],
    ],
    [
      'it moved to another plan, whose limit had been edited',
      free,
      [
        reload('11:00', { plans: { pro: { perMinute: 400 } } }),
        ofKey('12:00', 'update', { before: { plan: 'pro' }, after: { plan: 'free' } }),
      ],
      ['10:00', 400, '11:00', 500, '12:00', 50],
    ],
    [
      'it moved to a plan on which it states its limits, and these were edited in the keys file',
      own,
      [
        ofKey('11:00', 'update', {
          before: { plan: 'pro' },
          after: { plan: 'own', limits: { perMinute: 5 } },
        }),
        reload('12:00', { keys: { acme: { plan: 'own', limits: { perMinute: 5 } } } }),
      ],
      ['10:00', 500, '11:00', 5, '12:00', 7],
    ],
    ['it was created', free, [ofKey('11:00', 'create')], ['10:00', undefined, '11:00', 50]],
    [
      'it was deleted and created again on another plan',
      free,
      [
        ofKey('10:30', 'update', {
          before: { plan: 'own', limits: { perMinute: 5 } },
          after: { plan: 'pro' },
        }),
        ofKey('11:00', 'delete', { before: { plan: 'pro' } }),
        ofKey('12:00', 'create', { after: { plan: 'free' } }),
      ],
      ['10:00', 5, '10:30', 500, '11:00', undefined, '12:00', 50],
    ],
    [
      'an update and a creation failed',
      free,
      [
        ofKey('11:00', 'update', { before: { plan: 'pro' }, after: { plan: 'free' }, error: 'no reply' }),
        ofKey('12:00', 'create', { error: 'exists' }),
      ],
      ['10:00', 50],
    ],
    [
      'a grant that ended by itself, over an edit of the plan',
      free,
      [
        ofKey('11:00', 'grant', { before: {}, after: granted(90, '13:00') }),
        reload('12:00', { plans: { free: { perMinute: 60, perDay: 900 } } }),
      ],
      ['10:00', 60, '11:00', 90, '13:00', 50],
    ],
    [
      'a grant with a later begin, which was ended early',
      free,
      [
        ofKey('11:00', 'grant', { before: {}, after: granted(90, '14:00', '12:00') }),
        ofKey('13:00', 'ungrant', { before: granted(90, '14:00', '12:00') }),
      ],
      ['10:00', 50, '12:00', 90, '13:00', 50],
    ],
    [
      'a grant from before the record, which another grant replaced',
      free,
      [ofKey('11:00', 'grant', { before: granted(80, '14:00'), after: granted(90, '12:00') })],
      ['10:00', 80, '11:00', 90, '12:00', 50],
    ],
    [
      'changes of another key, and a grant of which nobody knows whether it is in force',
      free,
      [
        ofKey('11:00', 'update', { key: 'globex', before: { plan: 'pro' } }),
        ofKey('12:00', 'grant', { before: {}, after: granted(90, '14:00'), error: 'no reply' }),
      ],
      ['10:00', 50],
    ],
  ])('%s', (_, key, changes, steps, stated) => {
    expect(minuteLimits(key, changes, stated)).toEqual(steps);
  });
});

it('a key has the groups of its plan, its own groups and granted limits of groups in each period', () => {
  const reports = { operations: ['createReport'], perDay: 20 };
  const exports = { operations: ['exportReport'], perMinute: 3 };
  const grouped = compilePlans({ free: { custom: false, perMinute: 50, groups: { reports, exports } } });
  const ownReports = { operations: ['createReport'], perDay: 99 };
  const key = {
    id: 'acme',
    plan: 'free',
    limits: toLimits({ perMinute: 50, groups: { exports, reports: ownReports } }),
    ownGroups: ['reports'],
  };
  const grant = {
    limits: { groups: { reports: { perDay: 50 }, gone: { perDay: 1 } } },
    untilAt: at('11:30'),
  };
  const changes = [
    reload('10:30', { plans: { free: { perMinute: 50, groups: { reports } } } }),
    ofKey('11:00', 'grant', { before: {}, after: grant }),
    reload('12:00', { keys: { acme: { plan: 'free' } } }),
    ofKey('13:00', 'update', { before: { groups: { exports: ownReports } }, after: { groups: { reports } } }),
  ];
  const found = limitsOverTime({
    key,
    plans: grouped,
    grant: undefined,
    planStates: undefined,
    changes: changes.toReversed(),
    fromMs: Date.parse(at('10:00')),
    toMs: Date.parse(at('15:00')),
  });
  expect(found).toEqual([
    { fromAt: at('10:00'), limits: { perMinute: 50, groups: { reports } } },
    { fromAt: at('10:30'), limits: { perMinute: 50, groups: { reports, exports } } },
    {
      fromAt: at('11:00'),
      limits: { perMinute: 50, groups: { reports: { ...reports, perDay: 50 }, exports } },
    },
    { fromAt: at('11:30'), limits: { perMinute: 50, groups: { reports, exports } } },
    { fromAt: at('12:00'), limits: { perMinute: 50, groups: { reports, exports: ownReports } } },
    { fromAt: at('13:00'), limits: { perMinute: 50, groups: { exports, reports: ownReports } } },
  ]);
});

it.each(['redis', 'memory'] as const)(
  'the API has the limits of a key before an edit of its plan, with the store %s',
  async (store) => {
    const plansWith = (perMinute: number) => ({ plans: { free: { perMinute } } });
    const keys = [makeKey({ id: 'acme', plan: 'free' }).entry];
    const { gateways } = await startGateways(1, { store, overrides: { ...plansWith(60), keys } });
    const [gateway] = gateways;
    await gateway?.reload(plansWith(50));
    await expect
      .poll(async () => {
        const { limits } = (await gateway?.ask('GET', '/keys/acme/limits'))?.body ?? {};
        return limits?.map((step: { limits: object }) => step.limits);
      })
      .toEqual([{ perMinute: 60 }, { perMinute: 50 }]);
    expect((await gateway?.ask('GET', '/keys/nobody/limits'))?.status).toBe(404);
  },
);
