// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardOperators } from '../guard/operators/operators.ts';
import { createGuards } from '../guard/process/guards.ts';
import { createHolderPages } from '../holder/holder-pages.ts';
import type { Advisor } from '../interfaces/advisor.ts';
import type { OpenOperatorsPart } from '../interfaces/operators.ts';
import { createCredits } from '../makegood/credits/credits.ts';
import { makegoodOperators } from '../makegood/operators.ts';

/** Opens the parts of capabilities that run in each process. */
export const processParts = {
  guard: createGuards,
  makegood: createCredits,
  holder: createHolderPages,
};

/** Opens the parts of capabilities that serve operators. */
export const operatorsParts: readonly OpenOperatorsPart<typeof processParts>[] = [
  ({ guard }, sources) => guardOperators(guard, sources),
  ({ makegood }, sources) => makegoodOperators(makegood, sources),
];

/** What capabilities add to a simulation. */
export const advisors: readonly (() => Promise<Advisor>)[] = [
  async () => (await import('../guard/what-if/simulated-guard.ts')).adviseGuard,
];
