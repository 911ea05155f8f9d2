// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { guardOperators } from '../guard/operators.ts';
import { adviseGuard } from '../guard/what-if/simulated-guard.ts';
import type { Advisor } from '../interfaces/advisor.ts';
import type { OpenOperatorsPart, OpenReadRoutes } from '../interfaces/operators.ts';
import { makegoodOperators } from '../makegood/operators.ts';
import { openDeliveryRoutes } from '../webhooks/api/deliveries-route.ts';
import { webhooksOperators } from '../webhooks/operators.ts';

/** Opens the parts of capabilities that serve operators. */
export const operatorsParts: readonly OpenOperatorsPart[] = [
  ({ guard }, sources) => guardOperators(guard, sources),
  ({ makegood }, sources) => makegoodOperators(makegood, sources),
  (_, sources) => webhooksOperators(sources),
];

/** Opens the routes of capabilities in the reading thread. */
export const readRoutes: readonly OpenReadRoutes[] = [
  openDeliveryRoutes,
];

/** What capabilities add to a simulation. */
export const advisors: readonly Advisor[] = [
  adviseGuard,
];
