import type * as z from 'zod';
import type { Guards } from '../../fleet/guard/guards.ts';
import { type PlanRetried, retryOf } from '../../fleet/guard/revert-text.ts';
import type { Settings } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { errorResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { type retriedPlan, retryPlanWire } from '../wires/plans/plans.ts';

export interface RetrySources {
  readonly guards: Pick<Guards, 'retry'>;
  /** Records the retry for operators. */
  readonly recordRetry: (retry: PlanRetried) => void;
}

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
