import type * as z from 'zod';
import { errorResponse, jsonResponse, nothingChanged } from '../../../admin/admin-response.ts';
import { defineRoute, type Route } from '../../../admin/api/route.ts';
import type { Settings } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import type { Guards } from '../process/guards.ts';
import { type PlanRetried, retryOf } from '../revert-text.ts';
import { type retriedPlan, retryPlanWire } from './wires.ts';

interface RetrySources {
  readonly settings: () => Pick<Settings, 'plans'>;
  readonly recordRetry: (retry: PlanRetried) => void;
}

/** `POST /plans/{name}/retry` ends the revert of a plan, so that all gateways try the guarded edit again. */
export function retryRoute(guards: Pick<Guards, 'retry'>, { settings, recordRetry }: RetrySources): Route {
  return defineRoute({
    ...retryPlanWire,
    needs: 'write',
    async respond({ params: { name = '' }, author }) {
      if (!settings().plans.has(name)) return errorResponse('not_found', 'There is no plan with this name.');
      const outcome = await guards.retry(name);
      switch (outcome.kind) {
        case 'away':
          return nothingChanged();
        case 'no_guard':
          return errorResponse('conflict', `The plan ${name} has no guard that watches a smaller limit.`);
        case 'not_reverted':
          return errorResponse('conflict', `The plan ${name} is not reverted.`);
        case 'retried': {
          const retry = retryOf(outcome.edit, author);
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
