import { plansInForce } from '../../../keys/key-table.ts';
import type { Family } from '../../../observe/metrics/metric-families.ts';

export const guardFamilies: readonly Family[] = [
  {
    suffix: 'plan_reverted',
    type: 'gauge',
    labels: ['plan'],
    help: '1 while the guard of a plan has reverted the plan, otherwise 0. Plans without a guard have no value.',
    valuesOf: ({ settings }) =>
      [...plansInForce(settings).values()].flatMap(({ name, guard, reverted }) =>
        guard === undefined ? [] : [{ labels: { plan: name }, value: Number(reverted !== undefined) }],
      ),
  },
];
