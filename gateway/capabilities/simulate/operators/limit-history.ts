import { isDeepStrictEqual } from 'node:util';
import type { ListedKey } from '../../../admin/keys/find-keys.ts';
import type { KeySources } from '../../../admin/keys/key-sources.ts';
import { type TermsStep, termsOverTime } from '../../../admin/keys/over-time/limits-over-time.ts';
import { readChanges } from '../../../admin/keys/over-time/limits-route.ts';
import { type Changes, isLimitsChange, type RecordedChange } from '../../../fleet/changes.ts';
import { applyGrant } from '../../../quota/grants.ts';
import type { Key } from '../../../shared/model.ts';
import { minuteMs } from '../../../shared/words/figures.js';
import { type Edits, limitsThen } from '../replay/edits.ts';
import type { EditedStep } from '../replay/replayed-key.ts';

/** Returns the plan, limits and grants that a key had since a time (epoch ms) until now, the oldest first. */
export type LimitHistory = (listed: ListedKey, sinceMs: number) => readonly TermsStep[];

/** Reads the record of changes, from which the limits of all keys over time are computed. */
export async function readLimitHistory(
  { settings, nowMs, bounds }: Pick<KeySources, 'settings' | 'nowMs' | 'bounds'>,
  changes: Pick<Changes, 'read'>,
): Promise<LimitHistory> {
  const { plans, planStates } = settings();
  const recorded = await readChanges(changes, bounds);
  const ofPlans = recorded.filter(isOfPlans);
  const keysChanged = new Set(recorded.flatMap(keysOf));
  const toMs = nowMs();
  const compute: LimitHistory = ({ key, stated }, sinceMs) => {
    const isOfKey = (change: RecordedChange) => isOfPlans(change) || keysOf(change).includes(key.id);
    const steps = termsOverTime({
      ...{ key, stated, plans, planStates },
      // The start of a grant is on record.
      grant: undefined,
      changes: keysChanged.has(key.id) ? recorded.filter(isOfKey) : ofPlans,
      fromMs: sinceMs,
      toMs,
    });
    return steps.filter(
      (step, index) => !isDeepStrictEqual({ ...steps[index - 1], fromMs: step.fromMs }, step),
    );
  };
  // Most keys have only the limits of their plan.
  const ofPlan = new Map<string, readonly TermsStep[]>();
  return (listed, sinceMs) => {
    const { key, stated } = listed;
    const hasOwn = key.ownGroups !== undefined || stated?.changes !== undefined || keysChanged.has(key.id);
    if (hasOwn || plans.get(key.plan)?.isCustom !== false) return compute(listed, sinceMs);
    const name = `${sinceMs} ${key.plan}`;
    const steps = ofPlan.get(name) ?? compute(listed, sinceMs);
    ofPlan.set(name, steps);
    return steps;
  };
}

function isOfPlans(change: RecordedChange): boolean {
  return isLimitsChange(change) || (change.action === 'reload' && change.limitsBefore?.plans !== undefined);
}

function keysOf(change: RecordedChange): readonly string[] {
  if ('key' in change && change.key !== undefined) return [change.key];
  return change.action === 'reload' ? Object.keys(change.limitsBefore?.keys ?? {}) : [];
}

/**
 * Returns the limits of a key over time, and the same limits after edits. The limits at the end of a minute apply to the whole minute. An edit
 * of a plan applies only while the key was on this plan. A grant replaces limits also after an edit.
 */
export function editedStepsOf(
  key: Key,
  history: readonly TermsStep[],
  edits: Edits,
): readonly [EditedStep, ...EditedStep[]] {
  const steps = history.map(({ fromMs, plan = '', limits, grant }) => {
    const edited = limitsThen({ ...key, plan, limits }, edits);
    return {
      fromMinute: Math.floor(fromMs / minuteMs),
      present: applyGrant(limits, grant, fromMs),
      edited: applyGrant(edited, grant, fromMs),
    };
  });
  const [first, ...rest] = steps.filter(
    ({ fromMinute }, index) => fromMinute !== steps[index + 1]?.fromMinute,
  );
  if (first === undefined) throw new Error('a key has limits at any time');
  return [first, ...rest];
}
