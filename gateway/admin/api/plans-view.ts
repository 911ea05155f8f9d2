import type { Settings } from '../../model.ts';
import { limitsView } from './settings-view.ts';

/** Every plan with its limits and how many keys are on it, in the order of the configuration. Costs a look at every key. */
export function plansView({ plans, keys }: Pick<Settings, 'plans' | 'keys'>): object {
  const counts = new Map([...plans.keys()].map((name) => [name, { keys: 0, disabledKeys: 0 }]));
  for (const { plan, disabled } of keys.values()) {
    const count = counts.get(plan);
    if (count === undefined) continue;
    count.keys += 1;
    if (disabled) count.disabledKeys += 1;
  }
  return {
    plans: [...plans].map(([name, { limits, operations }]) => ({
      name,
      ...limitsView(limits),
      ...(operations && { operations }),
      ...counts.get(name),
    })),
  };
}
