import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { unguardedPlans } from '../../../../gateway/capabilities/guard/what-if/unguarded-plans.ts';
import { planSchema } from '../../../../gateway/keys/plans/plan-schema.ts';

const nowMs = Date.parse('2026-11-26T12:00:00Z');
type Plan = Parameters<typeof unguardedPlans>[0][number];

const windowsOf = (limits: Record<string, number>): Plan['windows'] =>
  Object.entries(limits).map(([name, limit]) => ({ name: name as 'minute', limit }));
const free = (limits: Record<string, number>, members: Partial<Plan> = {}): Plan => ({
  name: 'free',
  isCustom: false,
  windows: windowsOf(limits),
  ...members,
});
const guard = {
  before: { perMinute: 60, perDay: 1_000 },
  refusedAtMost: '3 %',
  untilAt: '2026-12-06T00:00:00.000Z',
};
const other = { ...guard, before: { perMinute: 50, perDay: 1_000 } };
const later = (limits: Record<string, number>, from = '2026-12-01T00:00:00.000Z') => ({ from, limits });
const now = free({ minute: 60, day: 1_000 });
const lowered = { minute: 40, day: 1_000 };

const textsOf = (before: Plan, after: Plan, share?: number) =>
  unguardedPlans([before], [after], nowMs, () => share).map(({ why, warning }) => `${why}: ${warning}`);

describe('a plan that becomes smaller without a suitable guard', () => {
  it.each([
    [
      'has a smaller limit',
      free(lowered),
      'no_guard: the plan free becomes smaller (60 → 40 a minute) without a guard',
    ],
    [
      'has smaller limits and a new window',
      free({ minute: 40, hour: 500, day: 900 }),
      'no_guard: the plan free becomes smaller (60 → 40 a minute, no limit → 500 an hour, 1,000 → 900 a day) without a guard',
    ],
    [
      'has a larger limit beside a smaller one',
      free({ minute: 40, day: 2_000 }),
      'no_guard: the plan free becomes smaller (60 → 40 a minute) without a guard',
    ],
    [
      'becomes smaller at a date',
      free({ minute: 60, day: 1_000 }, { changes: [later({ perMinute: 30, perDay: 1_000 })] }),
      'no_guard: the plan free becomes smaller on 2026-12-01 (60 → 30 a minute) without a guard',
    ],
    [
      'has a guard with other limits',
      free(lowered, { guard: other }),
      'other_limits: the plan free becomes smaller (60 → 40 a minute), but its guard would return it to other limits than its present limits: 50 a minute, 1,000 a day',
    ],
    [
      'has a guard that has ended',
      free(lowered, { guard: { ...guard, untilAt: '2026-11-26T12:00:00.000Z' } }),
      'ended: the plan free becomes smaller (60 → 40 a minute), but its guard ends earlier, on 2026-11-26T12:00:00.000Z',
    ],
    [
      'becomes smaller when its guard has ended',
      free(
        { minute: 60, day: 1_000 },
        { guard, changes: [later({ perMinute: 30, perDay: 1_000 }, guard.untilAt)] },
      ),
      'ended: the plan free becomes smaller on 2026-12-06 (60 → 30 a minute), but its guard ends earlier, on 2026-12-06',
    ],
  ])('%s', (_, after, warning) => {
    expect(textsOf(now, after)).toEqual([warning]);
  });

  it('is a plan whose guard allows less than the simulation refused', () => {
    expect(textsOf(now, free(lowered, { guard }), 0.03)).toEqual([
      'share_reached: the plan free becomes smaller (60 → 40 a minute), but its guard may soon return it to its present limits: the new limits would have refused 3.0 % of its requests in the worst ten minutes on record, and its guard allows less than 3 %',
    ]);
    expect(textsOf(now, free(lowered, { guard }), 0.029)).toEqual([]);
  });

  it('gets a proposed guard if the edit was simulated', () => {
    const proposed = (after: Plan, share: number | undefined) =>
      unguardedPlans([now], [after], nowMs, () => share).map((one) => one.guard);
    const line = (percent: number, until: string) =>
      `guard: { before: { perMinute: 60, perDay: 1000 }, refusedAtMost: ${percent} %, until: ${until} }`;
    expect(proposed(free(lowered), undefined)).toEqual([undefined]);
    for (const [share, percent] of [
      [0, 1],
      [0.004, 1],
      [0.01, 2],
      [0.08, 10],
      [0.79, 99],
    ] as const) {
      expect(proposed(free(lowered), share)).toEqual([line(percent, '2026-12-06')]);
    }
    // A guard of 100 % would never revert the edit.
    for (const share of [0.8, 1]) expect(proposed(free(lowered), share)).toEqual([undefined]);
    // The guard of a scheduled change lasts ten days from the change on.
    const changes = [later({ perMinute: 30 })];
    expect(proposed(free({ minute: 60, day: 1_000 }, { changes }), 0.08)).toEqual([line(10, '2026-12-11')]);
  });
});

describe('a plan with groups', () => {
  const group = (name: string, limit: number, ...operations: string[]) =>
    ({ name: `${name}-minute`, limit, group: name, operations }) as unknown as Plan['windows'][number];
  const withGroups = (...groups: Plan['windows']) => ({ windows: [...windowsOf({ minute: 60 }), ...groups] });
  const present = free({}, withGroups(group('a', 10, 'x', 'y'), group('b', 9, 'x')));
  const after = (...groups: Plan['windows']) => free({}, withGroups(...groups));

  it.each([
    [
      'has a smaller limit of a group, and a new group',
      after(group('a', 5, 'x', 'y'), group('b', 9, 'x'), group('new', 4, 'z')),
      'no_guard: the plan free becomes smaller (10 → 5 a minute for the group a, no limit → 4 a minute for the group new) without a guard',
    ],
    [
      'has a further operation in a group',
      after(group('a', 10, 'x', 'y', 'z'), group('b', 9, 'x')),
      'no_guard: the plan free becomes smaller (other operations in the group a) without a guard',
    ],
  ])('that %s gets a warning', (_, edited, warning) => {
    expect(textsOf(present, edited)).toEqual([warning]);
  });

  it('gets no warning if groups and operations have another order, in the plan or in its guard', () => {
    expect(textsOf(present, after(group('b', 9, 'x'), group('a', 10, 'y', 'x')))).toEqual([]);
    const before = {
      perMinute: 60,
      groups: { b: { operations: ['x'], perMinute: 9 }, a: { operations: ['y', 'x'], perMinute: 10 } },
    };
    const edited = after(group('a', 5, 'x', 'y'), group('b', 9, 'x'));
    expect(textsOf(present, { ...edited, guard: { ...guard, before } })).toEqual([]);
  });

  it('gets a proposed guard with its groups, which is valid YAML for any id of an operation', () => {
    const ids = ['x', 'null', 'True', 'get-pet.v1', '1', 'a: b', '~', '"', 'a, b', '*'];
    const earlier = free({}, withGroups(group('null', 10, ...ids)));
    const [found] = unguardedPlans([earlier], [after(group('null', 5, ...ids))], nowMs, () => 0);
    const proposed = planSchema.parse(parse(`{ perMinute: 60, ${found?.guard} }`));
    expect(proposed).toMatchObject({
      guard: { before: { perMinute: 60, groups: { null: { operations: ids, perMinute: 10 } } } },
    });
  });
});

describe('no warning is about a plan', () => {
  const changes = [later({ perMinute: 30, perDay: 1_000 })];
  const reverted = {
    sinceAt: '2026-11-26T11:00:00.000Z',
    requests: 100,
    refused: 5,
    edit: { perMinute: 40, perDay: 1_000 },
  };
  it.each([
    ['that stays the same', now, now],
    ['that becomes larger', now, free({ minute: 61, day: 1_000 })],
    ['that loses a window', now, free({ minute: 60 })],
    ['with a guard that returns it to its present limits', now, free(lowered, { guard })],
    ['that was smaller before the edit', free(lowered), free(lowered, { guard: other })],
    [
      'whose scheduled change is known to the gateway',
      free({ minute: 60 }, { changes }),
      free({ minute: 60 }, { changes }),
    ],
    [
      'whose change has taken effect',
      free({ minute: 30 }),
      free({ minute: 30 }, { changes: [later({ perMinute: 30 }, '2026-11-01T00:00:00.000Z')] }),
    ],
    ['that becomes custom', now, free({}, { isCustom: true })],
    ['that was custom', free({}, { isCustom: true }), now],
    ['that is new', { ...now, name: 'other' }, free(lowered)],
    [
      'that is reverted, and is not edited',
      free({ minute: 60, day: 1_000 }, { guard: other, reverted }),
      free(lowered, { guard: other }),
    ],
  ])('%s', (_, before, after) => {
    expect(textsOf(before, after)).toEqual([]);
  });

  it('but about a reverted plan whose limits or guard are edited', () => {
    const before = free({ minute: 60, day: 1_000 }, { guard, reverted });
    expect(textsOf(before, free(lowered))).toHaveLength(1);
    expect(textsOf(before, free({ minute: 45, day: 1_000 }, { guard: other }))).toHaveLength(1);
    expect(textsOf(before, free({ minute: 45, day: 1_000 }, { guard }))).toEqual([]);
  });
});
