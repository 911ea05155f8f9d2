import type { Settings } from '../../model.ts';
import { limitsView } from '../settings/settings-view.ts';

/** Every plan with its limits and how many keys are on it, in the order of the configuration. Costs a look at every key. */
export function plansView({ plans, keys }: Pick<Settings, 'plans' | 'keys'>): object {
  const counts = new Map([...plans.keys()].map((name) => [name, { keys: 0, disabledKeys: 0 }]));
  keys.tally((plan, isDisabled) => {
    const count = counts.get(plan);
    if (count === undefined) return;
    count.keys += 1;
    if (isDisabled) count.disabledKeys += 1;
  });
  return {
    plans: [...plans].map(([name, { limits, operations }]) => ({
      name,
      ...limitsView(limits),
      ...(operations && { operations }),
      ...counts.get(name),
    })),
  };
}
