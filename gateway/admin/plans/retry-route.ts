import * as z from 'zod';
import type { Guards } from '../../fleet/guard/guards.ts';
import { type PlanRetried, retryOf } from '../../fleet/guard/revert-text.ts';
import type { Settings } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { errorResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { instant, limitsByField } from '../api/response-parts.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { defineWire } from '../api/wire.ts';

export const retriedPlan = z.object({
  plan: z.string(),
  limits: limitsByField.describe('The limits of the edit, which apply again in all gateways within seconds.'),
  revertedAt: instant
    .optional()
    .describe('The time of the revert that ended; absent if this process had not learnt of it.'),
});

export interface RetrySources {
  readonly guards: Pick<Guards, 'retry'>;
  /** Records the retry for operators. */
  readonly recordRetry: (retry: PlanRetried) => void;
}

export const retryPlanWire = defineWire({
  method: 'POST',
  path: '/plans/{name}/retry',
  operationId: 'retryPlan',
  tag: 'Configuration',
  summary: 'Let a reverted plan try its edit again',
  description:
    'Ends the revert of a plan in all gateways. The limits of the edit apply again, and the guard starts its watch from zero.',
  params: { name: z.string().describe('The name of a plan.') },
  answers: { 200: { description: 'The plan tries its edit again.', schema: retriedPlan } },
});

/** `POST /plans/{name}/retry` ends the revert of a plan, so that all gateways try the guarded edit again. */
export function retryRoute({
  guards,
  recordRetry,
  settings,
}: RetrySources & { readonly settings: () => Pick<Settings, 'plans'> }): Route {
  return defineRoute({
    ...retryPlanWire,
    needs: 'write',
    async respond({ params: { name = '' }, token }) {
      if (!settings().plans.has(name)) return errorResponse('not_found', 'There is no plan with this name.');
      const outcome = await guards.retry(name);
      switch (outcome.kind) {
        case 'away':
          return storeUnavailable();
        case 'no_guard':
          return errorResponse('conflict', `The plan ${name} has no guard that watches a smaller limit.`);
        case 'not_reverted':
          return errorResponse('conflict', `The plan ${name} is not reverted.`);
        case 'retried': {
          const retry = retryOf(outcome.edit, token.name);
          recordRetry(retry);
          return jsonResponse({
            plan: name,
            limits: retry.after,
            revertedAt: isoOf(outcome.revert?.sinceMs),
          } satisfies z.output<typeof retriedPlan>);
        }
      }
    },
  });
}
