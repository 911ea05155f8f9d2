// biome-ignore-all format: each entry has a line of its own, which goes with its capability
import { createBrownouts } from '../brownouts/brownouts.ts';
import { guardFamilies } from '../guard/operators/guard-families.ts';
import { guardOperators } from '../guard/operators/operators.ts';
import { createGuards } from '../guard/process/guards.ts';
import { guardKeys } from '../guard/process/redis-keys.ts';
import { createHolderPages } from '../holder/holder-pages.ts';
import { holderOperators } from '../holder/links/operators.ts';
import { holderKeys } from '../holder/redis-keys.ts';
import type { LoadReadRoute, OpenOperatorsPart } from '../interfaces/operators.ts';
import { createLeaks } from '../leaks/leaks.ts';
import { leaksOperators } from '../leaks/operators/operators.ts';
import { leakReportKeys } from '../leaks/redis-keys.ts';
import { createCredits } from '../makegood/credits/credits.ts';
import { creditKeys } from '../makegood/credits/redis-keys.ts';
import { makegoodOperators } from '../makegood/operators.ts';
import { otelOperators } from '../otel/metrics/operators.ts';
import { otelFamilies } from '../otel/metrics/otel-families.ts';
import { createOtel } from '../otel/otel.ts';
import { notifyFamilies } from '../webhooks/notify-families.ts';
import { webhooksOperators } from '../webhooks/operators.ts';
import { webhooksKeys } from '../webhooks/redis-keys.ts';

/** Opens the parts of capabilities that run in each process. */
export const processParts = {
  brownouts: createBrownouts,
  guard: createGuards,
  leaks: createLeaks,
  makegood: createCredits,
  holder: createHolderPages,
  otel: createOtel,
};

/** Opens the parts of capabilities that serve operators. */
export const operatorsParts: readonly OpenOperatorsPart<typeof processParts>[] = [
  ({ guard }, sources) => guardOperators(guard, sources),
  ({ leaks }, sources) => leaksOperators(leaks.reports, sources),
  ({ makegood }, sources) => makegoodOperators(makegood, sources),
  ({ holder }, sources) => holderOperators(holder.links, sources),
  (_, sources) => webhooksOperators(sources),
  ({ otel }, sources) => otelOperators(otel.collector, sources),
];

/** The metrics that the parts for operators have (`families`), for the reference. They have no values here. */
export const capabilityFamilies = [
  ...guardFamilies,
  ...notifyFamilies(() => undefined),
  ...otelFamilies,
];

/** The keys of capabilities in Redis, for the reference. */
export const capabilityRedisKeys = {
  ...guardKeys,
  ...holderKeys,
  ...leakReportKeys,
  ...creditKeys,
  ...webhooksKeys,
};

/**
 * What capabilities add to proposals of limits (`Advisor`).
 *
 * @public the list stands also in a gateway without simulations, which nobody reads there
 */
export const advisors = [
  async () => (await import('../guard/what-if/simulated-guard.ts')).adviseGuard,
] as const;

/** Makes the routes that read many keys or recorded minutes. They run in the reading thread, too. */
export const readRoutes: readonly LoadReadRoute[] = [
  async (sources) => (await import('../simulate/operators/simulate-route.ts')).simulateRoute(sources, advisors),
  async (sources) => (await import('../webhooks/api/deliveries-route.ts')).deliveriesRoute(sources),
];
