import type * as z from 'zod';
import { errorResponse, jsonResponse, storeUnavailable } from '../../admin/admin-response.ts';
import { defineRoute, type Route } from '../../admin/api/route.ts';
import type { PartState } from '../../fleet/process-state.ts';
import { plansInForce } from '../../keys/key-table.ts';
import { toLimitFields } from '../../keys/limits/limit-fields.ts';
import type { Plans, Settings } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { OperatorsPart, OperatorsSources } from '../interfaces/operators.ts';
import { retryChange, revertChange } from './events.ts';
import type { Guards } from './process/guards.ts';
import {
  type PlanRetried,
  reasonText,
  retryOf,
  revertedLimitsText,
  revertOf,
  revertText,
} from './revert-text.ts';
import { type retriedPlan, retryPlanWire } from './wires.ts';

/** Records reverts and retries, and shows the reverted plans. Every gateway of the fleet records a revert, and the records are merged. */
export function guardOperators(
  guards: Guards,
  { settings, recordChange, recordNotice, log }: OperatorsSources,
): OperatorsPart {
  const stopListening = guards.onNews((news) => {
    for (const { edit, revert, isNew } of news) {
      if (!isNew || revert === undefined) continue;
      const reverted = revertOf(edit, revert);
      const { plan, requests, refused } = reverted;
      recordChange(revertChange(reverted));
      recordNotice(reverted);
      log.warn({ plan, requests, refused }, 'a guard has returned a plan to its earlier limits');
    }
  });
  const route = retryRoute(guards, {
    settings,
    recordRetry(retry) {
      const { plan, by } = retry;
      recordChange(retryChange(retry));
      recordNotice(retry);
      log.info({ plan, by }, 'a reverted plan tries its edit again');
    },
  });

  return {
    routes: [route],
    families: [
      {
        suffix: 'plan_reverted',
        type: 'gauge',
        help: '1 while the guard of a plan has reverted the plan, otherwise 0.',
        valuesOf: ({ settings }) =>
          [...plansInForce(settings).values()].flatMap(({ name, guard, reverted }) =>
            guard === undefined ? [] : [{ labels: { plan: name }, value: Number(reverted !== undefined) }],
          ),
      },
    ],
    state: () => stateOf(plansInForce(settings())),
    close: stopListening,
  };
}

/** What the gateway shows about plans that are reverted now. @param plans the plans in force */
export function stateOf(plans: Plans): PartState {
  const revertedPlans = [...plans.values()].flatMap(({ name: plan, limits, reverted }) => {
    if (reverted === undefined) return [];
    const { sinceMs, requests, refused } = reverted;
    const [edit, inForce] = [toLimitFields(reverted.edit), toLimitFields(limits)];
    return [{ plan, since: isoOf(sinceMs), requests, refused, edit, inForce }];
  });
  return {
    members: { revertedPlans },
    reasons: revertedPlans.map(
      (one) =>
        `plan ${one.plan} is guarded: its limits from before the edit apply since ${one.since} (${revertedLimitsText(one)}), because ${reasonText(one)}`,
    ),
    faults: revertedPlans.map((one) => ({
      severity: 'warning',
      code: 'plan_reverted',
      text: `${revertText(one)} To try the edit again, run tollgate plans retry ${one.plan}.`,
      sinceAt: one.since,
    })),
  };
}

interface RetrySources {
  readonly settings: () => Pick<Settings, 'plans'>;
  /** Records the retry for operators. */
  readonly recordRetry: (retry: PlanRetried) => void;
}

/** `POST /plans/{name}/retry` ends the revert of a plan, so that all gateways try the guarded edit again. */
function retryRoute(guards: Pick<Guards, 'retry'>, { settings, recordRetry }: RetrySources): Route {
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
