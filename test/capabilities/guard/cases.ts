import { expect } from 'vitest';
import { firstState } from '../../../gateway/capabilities/guard/process/decide-guard.ts';
import { createGuardStore } from '../../../gateway/capabilities/guard/process/guard-store.ts';
import { guardKeys } from '../../../gateway/capabilities/guard/process/redis-keys.ts';
import { limitFieldNames } from '../../../gateway/keys/limits/limit-fields.ts';
import type { CapabilityCases } from '../../support/capability-cases.ts';
import { makeKey } from '../../support/gateway-process.ts';
import { countsOf, guardedEdit } from './process/guard-fixture.ts';

type Members = Readonly<Record<string, unknown>>;

const free = (members: Members) => ({ plans: { free: members } });
const guarded = (members: Members) =>
  free({
    perMinute: 40,
    guard: { before: { perMinute: 60 }, refusedAtMost: '3 %', until: '2100-01-01', ...members },
  });
const reports = (perMinute: number) => ({ reports: { operations: ['listPets'], perMinute } });
const guard = { before: { perMinute: 60 }, refusedAtMost: '3 %', until: '2100-01-01' };
const plans = { enterprise: 'custom' };

export const cases: CapabilityCases = {
  settings: {
    'plans.*.guard': [free({ perMinute: 60 }), guarded({})],
    ...Object.fromEntries(
      limitFieldNames.map((field) => [
        `plans.*.guard.before.${field}`,
        [guarded({ before: { [field]: 60 } }), guarded({ before: { [field]: 61 } })] as const,
      ]),
    ),
    'plans.*.guard.refusedAtMost': [guarded({}), guarded({ refusedAtMost: '0.5 %' })],
    'plans.*.guard.until': [guarded({}), guarded({ until: '2101-01-01' })],
    'plans.*.guard.before.groups': [
      guarded({ before: { perMinute: 60, groups: reports(5) } }),
      guarded({ before: { perMinute: 60, groups: reports(6) } }),
    ],
  },
  edits: [
    [
      'a guard, and its share',
      {
        plans: {
          ...plans,
          free: { perMinute: 60 },
          own: { perDay: 5, guard: { ...guard, refusedAtMost: '0.5%' } },
        },
      },
      { plans: { ...plans, free: { perMinute: 50, guard }, own: { perDay: 5, guard } } },
      [
        'free guard: nothing → back to 60 a minute at 3 % refused (until 2100-01-01), 60 → 50 a minute',
        'own guard.refusedAtMost: 0.5 % → 3 %',
      ],
    ],
  ],
  needRedis: [
    [
      'the guard of a plan',
      guarded({}),
      'plans.free.guard',
      '`plans.free.guard` needs `redis`: without Redis, a restart would forget that the guard has reverted the plan; add `redis`, or remove the guard',
    ],
  ],
  notices: ({ atMs }) => [
    {
      kind: 'plan_reverted',
      plan: 'free',
      sinceMs: atMs,
      requests: 4_100,
      refused: 132,
      refusedShareMax: 0.03,
      edit: { perMinute: 40, perDay: 1_000 },
      inForce: { perMinute: 60, perDay: 1_000 },
    },
    { kind: 'plan_retried', plan: 'free', by: 'alice', before: { perMinute: 60 }, after: { perMinute: 40 } },
  ],
  plans: { guarded: { perMinute: 40, guard } },
  webhookEvents: [
    {
      what: 'a revert of a plan',
      type: 'plan.reverted',
      plans: {
        guarded: { perDay: 1, guard: { before: { perDay: 9 }, refusedAtMost: '50 %', until: '2100-01-01' } },
      },
      bounds: { guardRequestsMin: 2 },
      key: makeKey({ id: 'guarded', plan: 'guarded' }),
      async cause({ request }) {
        await request(0);
        await request(1);
      },
      data: { plan: 'guarded', requests: 2, refused: 1 },
    },
  ],
  redisKeys: {
    kinds: guardKeys,
    config: (limits) => {
      const before = Object.fromEntries(Object.entries(limits).map(([name, max]) => [name, 2 * Number(max)]));
      return { plan: { guard: { before, refusedAtMost: '3 %', until: '2100-01-01' } } };
    },
    async fill({ connection, bounds }) {
      const edit = guardedEdit();
      const guard = createGuardStore({ redis: connection, processId: 'ab12cd34ef56', bounds });
      const periods = Array.from({ length: bounds.guardSlots }, (_, index) => {
        const refused = Object.fromEntries(Array.from({ length: 250 }, (_, key) => [`${index} ${key}`, 100]));
        return { agoMs: index * bounds.guardSlotMs, counts: countsOf(edit, { refused }, bounds) };
      });
      // The share is more than 100 %, so that the plan is not reverted.
      const never = { ...edit, guard: { ...edit.guard, refusedShareMax: 2 } };
      const reply = await guard.report(never, { known: firstState, keysMin: 1, number: 1, periods });
      expect(reply).toMatchObject({ kind: 'replied', state: firstState });
    },
  },
};
