import type { PlanChanged } from '../../../fleet/kinds/plans.ts';
import { limitChangeTexts } from '../../../keys/limits/limit-texts.ts';
import { limitsAt } from '../../../keys/plans/plans.ts';
import type { Plan, Settings } from '../../../shared/model.ts';
import type { ScanPeriod } from './marks.ts';

/** Finds the plans whose limits have changed at the date that the configuration states. Several changes of a plan are one notice. */
export function* changedPlans(
  { plans }: Pick<Settings, 'plans'>,
  { fromMs, toMs }: ScanPeriod,
): Generator<PlanChanged> {
  for (const plan of plans.values()) {
    const last = plan.changes?.findLast((change) => change.fromMs > fromMs && change.fromMs <= toMs);
    const edits = last === undefined ? [] : editsBetween(plan, fromMs, toMs);
    if (last === undefined || edits.length === 0) continue;
    const version = `scheduled ${last.fromMs}`;
    yield { kind: 'plan_changed', plan: plan.name, cause: 'schedule', edits, version };
  }
}

function editsBetween(plan: Plan, fromMs: number, toMs: number): readonly string[] {
  return limitChangeTexts(limitsAt(plan, fromMs), limitsAt(plan, toMs));
}
