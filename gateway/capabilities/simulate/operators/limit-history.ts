import { isDeepStrictEqual } from 'node:util';
import type { ListedKey } from '../../../admin/keys/find-keys.ts';
import type { KeySources } from '../../../admin/keys/key-sources.ts';
import {
  planLimitsOverTime,
  type TermsStep,
  termsOverTime,
} from '../../../admin/keys/over-time/limits-over-time.ts';
import { readChanges } from '../../../admin/keys/over-time/limits-route.ts';
import type { Changes, RecordedChange } from '../../../fleet/changes.ts';
import { applyGrant } from '../../../quota/grants.ts';
import type { Period } from '../../../shared/schema/dates-and-durations.ts';
import { minuteMs } from '../../../shared/words/figures.js';
import { type Edits, limitsThen } from '../replay/edits.ts';
import type { EditedStep } from '../replay/replayed-key.ts';

/** The limits of keys over time, from the record of changes. */
export interface LimitHistory {
  /** Returns the terms of a key since the start of the history, the oldest first. */
  readonly of: (listed: ListedKey) => readonly TermsStep[];
  /** Epoch ms; set if not all changes were read, so that limits before this time may have been others. */
  readonly changesReadSinceMs?: number | undefined;
}

/** Reads the record of changes. The history begins at `fromMs` and ends now. */
export async function readLimitHistory(
  { settings, nowMs, bounds }: Pick<KeySources, 'settings' | 'nowMs' | 'bounds'>,
  changes: Pick<Changes, 'read'>,
  fromMs: number,
): Promise<LimitHistory> {
  const { plans, planStates } = settings();
  const recorded = await readChanges(changes, bounds);
  const toMs = nowMs();
  const ofPlans = planLimitsOverTime({ plans, planStates }, recorded, toMs);
  const ofKeys = Map.groupBy(
    recorded.flatMap((change) => keysOf(change).map((id) => ({ id, change }))),
    ({ id }) => id,
  );
  const compute = ({ key, stated }: ListedKey) => {
    const changes = (ofKeys.get(key.id) ?? []).map(({ change }) => change);
    // The start of a grant is on record.
    const history = { key, stated, grant: undefined, changes, fromMs, toMs };
    const steps = termsOverTime(history, ofPlans);
    return steps.filter(
      (step, index) => !isDeepStrictEqual({ ...steps[index - 1], fromMs: step.fromMs }, step),
    );
  };
  const known = new Map<string, readonly TermsStep[]>();
  const oldest = recorded.at(-1);
  return {
    of(listed) {
      const { key, stated } = listed;
      const hasOwn = key.ownGroups !== undefined || stated?.changes !== undefined || ofKeys.has(key.id);
      // Most keys have only the limits of their plan, and share their steps.
      const isOwn = hasOwn || plans.get(key.plan)?.isCustom !== false;
      const name = isOwn ? `key ${key.id}` : `plan ${key.plan}`;
      const steps = known.get(name) ?? compute(listed);
      known.set(name, steps);
      return steps;
    },
    changesReadSinceMs:
      oldest && recorded.length >= bounds.limitChangesReadMax ? Date.parse(oldest.at) : undefined,
  };
}

/** Whether a key had a grant, or a change of its limits, in the minutes of a period. */
export function termsIn(
  steps: readonly TermsStep[],
  { fromMs, toMs }: Period,
): { readonly grant: boolean; readonly change: boolean } {
  const startMs = Math.floor(fromMs / minuteMs) * minuteMs;
  const endMs = (Math.floor(toMs / minuteMs) + 1) * minuteMs;
  const within = steps.filter(
    (step, index) => step.fromMs < endMs && (steps[index + 1]?.fromMs ?? Number.POSITIVE_INFINITY) > startMs,
  );
  return { grant: within.some(({ grant }) => grant !== undefined), change: within.length > 1 };
}

function keysOf(change: RecordedChange): readonly string[] {
  if ('key' in change && change.key !== undefined) return [change.key];
  return change.action === 'reload' ? Object.keys(change.limitsBefore?.keys ?? {}) : [];
}

/**
 * Returns a function that computes the limits of a key over time, and the same limits after edits. The limits at the end of a minute apply to
 * the whole minute. A grant replaces limits also after an edit. The result has at least one step.
 */
export function editedStepsOver(
  history: LimitHistory,
  edits: Edits,
): (listed: ListedKey) => readonly EditedStep[] {
  // Keys of the same plan share their history, so an edit of the plan has the same result for them.
  const known = new WeakMap<readonly TermsStep[], readonly EditedStep[]>();
  return (listed) => {
    const { key } = listed;
    const terms = history.of(listed);
    const compute = () => {
      const steps = terms.map(({ fromMs, limits, ownGroups, grant }) => ({
        fromMinute: Math.floor(fromMs / minuteMs),
        present: applyGrant(limits, grant, fromMs),
        edited: applyGrant(limitsThen({ ...key, limits, ownGroups }, edits), grant, fromMs),
      }));
      return steps.filter(({ fromMinute }, index) => fromMinute !== steps[index + 1]?.fromMinute);
    };
    if (edits.keys.has(key.id)) return compute();
    const steps = known.get(terms) ?? compute();
    known.set(terms, steps);
    return steps;
  };
}
