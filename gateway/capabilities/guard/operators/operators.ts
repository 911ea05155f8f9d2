import type { PartState } from '../../../fleet/process-state.ts';
import { plansInForce } from '../../../keys/key-table.ts';
import { toLimitFields } from '../../../keys/limits/limit-fields.ts';
import type { Plans } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import type { OperatorsPart, OperatorsSources } from '../../interfaces/operators.ts';
import { retryChange, revertChange } from '../events.ts';
import type { Guards } from '../process/guards.ts';
import { type PlanRetried, reasonText, revertedLimitsText, revertOf, revertText } from '../revert-text.ts';
import { guardFamilies } from './guard-families.ts';

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
  function recordRetry(retry: PlanRetried): void {
    const { plan, by } = retry;
    recordChange(retryChange(retry));
    recordNotice(retry);
    log.info({ plan, by }, 'a reverted plan tries its edit again');
  }

  return {
    async routes() {
      const { retryRoute } = await import('./retry-route.ts');
      return [retryRoute(guards, { settings, recordRetry })];
    },
    families: guardFamilies,
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
