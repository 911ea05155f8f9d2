import type { AdviceWords } from '../../interfaces/configuration.ts';

/** What the guard adds to a simulation, for the API document. */
export const guardAdvice: AdviceWords = {
  figures: {
    guardShare:
      'The largest share of refused requests, 0 to 1, in ten minutes with at least 100 requests. Each key counts for its part, as for a guard. A guard whose `refusedAtMost` is larger would probably not have reverted the plan. Present if the limits of the plan are edited, together with the limits of at most 99 other plans.',
  },
  proposals: {
    guards:
      'Proposals by plan for plans that get a smaller limit: a `guard` as a line of the configuration. Its `refusedAtMost` is larger than `guardShare`. A plan whose `refusedAtMost` would be 100 % has none. A guard needs `redis`.',
  },
};
