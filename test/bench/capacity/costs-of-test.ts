import { type Costs, costNames } from './unit-costs.ts';

/** Round unit costs for cases that are computed by hand. A cost that is not listed is zero. */
export function costsOfTest(named: Partial<Costs>): Costs {
  const nothing = Object.fromEntries(Object.keys(costNames).map((name) => [name, 0])) as Record<
    keyof Costs,
    number
  >;
  return { ...nothing, turnSeconds: 0.001, heapBytesMax: 4e9, ...named };
}
