// biome-ignore-all format: each entry has a line of its own, which goes with its capability

import { createBrownouts } from '../brownouts/brownouts.ts';
import { createGuards } from '../guard/process/guards.ts';
import { createHolderPages } from '../holder/holder-pages.ts';
import { createCredits } from '../makegood/credits/credits.ts';

/** Opens the parts of capabilities that run in each process. */
export const processParts = {
  brownouts: createBrownouts,
  guard: createGuards,
  makegood: createCredits,
  holder: createHolderPages,
};
