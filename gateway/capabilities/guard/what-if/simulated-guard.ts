import { groupNames, ofAllOperations, smallerLimits } from '../../../shared/limits.ts';
import type { Key, Limits } from '../../../shared/model.ts';
import { type KeyMinutes, offeredAt, withRefused } from '../../../usage/read/key-minutes.ts';
import type { Advisor, KeyWatcher } from '../../simulate/advisor.ts';
import { type Edits, edited, type Present } from '../../simulate/replay/edits.ts';
import {
  offeredInGroups,
  type ReplayedGroups,
  refusedByAnyGroup,
  unreplayableGroups,
} from '../../simulate/replay/replay-groups.ts';
import type { Calendar } from '../../simulate/replay/window-rooms.ts';
import { activeMax } from '../process/guard-counts.ts';
import { BusiestRefusals, stepsPerPeriod } from './busiest-refusals.ts';
import { proposeGuard } from './propose-guard.ts';

/** Finds the share of refused requests that a guard of each edited plan must allow, and proposes guards. */
export const adviseGuard: Advisor = {
  watch({ edits, present, period, calendar, bounds }) {
    const { minuteMs } = calendar;
    const stepMs = (bounds.guardSlotMs * bounds.guardSlots) / stepsPerPeriod;
    const busiest = new BusiestRefusals(
      Math.floor(period.fromMs / minuteMs),
      Math.floor(period.toMs / minuteMs),
      {
        stepMinutes: Math.max(1, Math.round(stepMs / minuteMs)),
        requestsMin: bounds.guardRequestsMin,
        partsMax: activeMax,
      },
    );
    const plans = edits.plans.size <= bounds.simulationGuardsMax ? [...edits.plans] : [];
    const watched = new Map(plans.map(([name]) => [name, smallerOf(name, edits, present)]));
    return {
      ofKey({ plan }: Key, recorded, groups) {
        const ofPlan = watched.get(plan);
        return (
          ofPlan &&
          refusalsOf(groups, recorded, ofPlan, calendar, (record, refusals) => {
            for (const [place, minute] of record.minute.entries()) {
              // Two limits may refuse the same request.
              const refused = Math.min(refusals.get(minute) ?? 0, offeredAt(record, place));
              if (refused > 0) busiest.onRefused(minute, refused);
            }
            busiest.add(plan, record);
          })
        );
      },
      ofPlan: (name) => (watched.has(name) ? { guardShare: busiest.shareOf(name) } : {}),
    };
  },

  advise({ edits, present, plans, nowMs, bounds }) {
    if (edits.plans.size > bounds.simulationGuardsMax) return { guards: {} };
    const guards = [...edits.plans].flatMap(([name, edit]) => {
      const limits = present.plans.get(name)?.limits ?? [];
      const smaller = smallerOf(name, edits, present);
      if (smaller.length === 0) return [];
      // The share of a group that is recorded only by the hour is not known.
      const groups = groupNames(smaller);
      if (unreplayableGroups(limits, edited(limits, edit)).some((group) => groups.includes(group))) return [];
      const share = plans.find((plan) => plan.name === name)?.guardShare ?? 0;
      const guard = proposeGuard(limits, share, nowMs);
      return guard === undefined ? [] : [[name, guard]];
    });
    return { guards: Object.fromEntries(guards) };
  },
};

/** The limits of an edited plan that become smaller, which a guard of the plan would watch. */
function smallerOf(name: string, edits: Edits, present: Present): Limits {
  const limits = present.plans.get(name)?.limits ?? [];
  return smallerLimits(limits, edited(limits, edits.plans.get(name) ?? {}));
}

/**
 * Collects the refusals of one key by minute. A guard that watches only limits of groups counts only requests of these groups. Such a share
 * leaves out all other requests and refusals.
 *
 * @param watched the limits that become smaller
 * @param onEnd gets the record of the key and its refusals
 */
function refusalsOf(
  groups: ReplayedGroups,
  recorded: KeyMinutes,
  watched: Limits,
  calendar: Calendar,
  onEnd: (record: KeyMinutes, refusals: ReadonlyMap<number, number>) => void,
): KeyWatcher {
  const names = groupNames(watched);
  const isOfGroups = names.length > 0 && ofAllOperations(watched).length === 0;
  const record = isOfGroups
    ? offeredInGroups(groups, names, calendar)
    : withRefused(recorded, refusedByAnyGroup(groups, calendar));
  const refusals = new Map<number, number>();
  const count = (minute: number, refused: number) =>
    void refusals.set(minute, (refusals.get(minute) ?? 0) + refused);
  return {
    onRefused: isOfGroups ? undefined : count,
    onGroupRefused: (name, minute, refused) => {
      if (!isOfGroups || names.includes(name)) count(minute, refused);
    },
    end: () => onEnd(record, refusals),
  };
}
