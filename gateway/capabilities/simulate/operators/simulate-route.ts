import type * as z from 'zod';
import { errorResponse, jsonResponse, storeUnavailable } from '../../../admin/admin-response.ts';
import { defineRoute, type Route } from '../../../admin/api/route.ts';
import { findKeys } from '../../../admin/keys/find-keys.ts';
import type { KeySources } from '../../../admin/keys/key-sources.ts';
import { recordFromAt } from '../../../admin/operations/kept-period.ts';
import { plansInForce } from '../../../keys/key-table.ts';
import { type LimitField, limitFieldOf, limitsAsYaml } from '../../../keys/limits/limit-fields.ts';
import { type Key, type Limits, type PlanWindow, planWindows } from '../../../shared/model.ts';
import { isoOf } from '../../../shared/schema/dates-and-durations.ts';
import { dayMs, minuteMs } from '../../../shared/words/figures.js';
import type { Advisor, LoadAdvisors } from '../advisor.ts';
import { type Edits, edited, type LimitEdit, limitsThen, type Present, problemOf } from '../replay/edits.ts';
import { explainDifference } from '../replay/explain-difference.ts';
import { unreplayableGroups } from '../replay/replay-groups.ts';
import type { Difference } from '../replay/verdict.ts';
import { type CircumstanceSources, readCircumstances } from './circumstances.ts';
import type { LeftOut } from './group-records.ts';
import type { limitEdit } from './simulation-body.ts';
import { createSimulations } from './simulations.ts';
import { simulateWire, type simulationShown } from './wires.ts';

export interface SimulateSources extends CircumstanceSources {
  readonly keys: Omit<KeySources, 'readStatus'>;
}

/** `POST /simulate` replays the recorded requests under other limits. The simulation changes nothing. */
export function simulateRoute({ keys, ...circumstances }: SimulateSources, advisors: LoadAdvisors): Route {
  const { bounds } = keys;
  const simulate = createSimulations(keys, circumstances.changes, advisors);
  return defineRoute({
    ...simulateWire,
    needs: 'read',
    readsCounts: true,
    bodyBytesMax: bounds.simulationBytesMax,
    bodyMembersMax: bounds.simulationMembersMax,
    async respond({ body: { from, to, plans, keys: ofKeys, bans, listed, ...asked } }) {
      const present: Present = { plans: plansInForce(keys.settings()), bans: keys.settings().bans };
      const edits: Edits = { plans: editsOf(plans), keys: editsOf(ofKeys), bans };
      const named = await findKeys(keys, Object.keys(ofKeys));
      if (named === undefined) return storeUnavailable();
      const byId = new Map(named.map(({ key }) => [key.id, key]));
      const problem = problemOf(edits, present, (id) => byId.get(id));
      if (problem !== undefined) return errorResponse('invalid_request', problem);
      if (asked.plan !== undefined && !present.plans.has(asked.plan)) {
        return errorResponse('invalid_request', 'There is no plan with the name in `plan`.');
      }
      const toMs = to ?? keys.nowMs();
      const fromMs = Math.floor((from ?? toMs - dayMs + minuteMs) / minuteMs) * minuteMs;
      if (fromMs > toMs)
        return errorResponse('invalid_request', 'The member `from` must not be later than `to`.');
      const simulated = await simulate({ ...asked, period: { fromMs, toMs }, edits, keysListed: listed });
      if (simulated === undefined) return storeUnavailable();
      const { period, verdict, leftOut, changesReadSinceMs, ...rest } = simulated;
      const differences = await explained(verdict.reproduced.differences, period.fromMs, changesReadSinceMs);
      if (differences === undefined) return storeUnavailable();
      return jsonResponse({
        from: isoOf(Math.min(period.fromMs, period.toMs)),
        to: isoOf(period.toMs),
        minutesSinceAt: recordFromAt({ fromMs, toMs }, keys.usage, keys.nowMs()),
        source: 'record',
        ...verdict,
        ...(await adviceOn(advisors, { edits, present, plans: verdict.plans, nowMs: keys.nowMs(), bounds })),
        ...notReplayedIn(edits, present, (id) => byId.get(id), leftOut),
        reproduced: { ...verdict.reproduced, differences },
        ...rest,
      } satisfies z.output<typeof simulationShown>);
    },
  });

  /** Adds the reason to each difference between the replay and the record. The result is undefined when the store does not reply. */
  async function explained(
    differences: readonly Difference[],
    fromMs: number,
    changesReadSinceMs: number | undefined,
  ) {
    if (differences.length === 0) return [];
    const found = await findKeys(keys, [...new Set(differences.flatMap(({ of }) => of))]);
    if (found === undefined) return undefined;
    const plans = new Map(found.map(({ key: { id, plan } }) => [id, plan]));
    const known = await readCircumstances(circumstances, fromMs, bounds);
    return differences.map(({ limitsChanged, ...one }) => {
      const ofMinute = one.of.map((id) => ({ id, plan: plans.get(id) }));
      return {
        ...one,
        why: explainDifference(one.at, ofMinute, known, { limitsChanged, changesReadSinceMs }),
      };
    });
  }
}

/** The members that capabilities add to the response. */
async function adviceOn(
  advisors: LoadAdvisors,
  simulated: Parameters<Advisor['advise']>[0],
): Promise<ReturnType<Advisor['advise']>> {
  const advice = await Promise.all(advisors.map((load) => load()));
  return Object.assign({}, ...advice.map((advisor) => advisor.advise(simulated)));
}

/**
 * Returns the edited groups with requests that the simulation leaves out, because their operations are recorded only by the hour. A trial
 * takes the place of the simulation.
 */
function notReplayedIn(
  edits: Edits,
  present: Present,
  keyOf: (id: string) => Key | undefined,
  leftOut: readonly LeftOut[],
): Pick<z.output<typeof simulationShown>, 'notReplayed'> {
  const groupsOf = (
    of: 'plan' | 'key',
    name: string,
    { groups = {} }: LimitEdit,
    limits: Limits,
    then: Limits,
  ) => {
    const unreplayable = unreplayableGroups(limits, then);
    const left = leftOut.filter((one) => one.of === of && one.name === name);
    return Object.keys(groups).flatMap((group) => {
      const ofGroup = left.filter((one) => one.group === group);
      const requests = ofGroup.reduce((sum, one) => sum + one.requests, 0);
      if (unreplayable.includes(group)) return [{ group, why: otherOperations(group), requests }];
      return requests === 0 ? [] : [{ group, why: olderRequests(group), isPartly: true as const, requests }];
    });
  };
  const ofPlans = [...edits.plans].flatMap(([plan, edit]) => {
    const limits = present.plans.get(plan)?.limits ?? [];
    const then = edited(limits, edit);
    const trial = `trial: ${limitsAsYaml(then)}`;
    return groupsOf('plan', plan, edit, limits, then).map((one) => ({ plan, ...one, trial }));
  });
  const ofKeys = [...edits.keys].flatMap(([id, edit]) => {
    const key = keyOf(id);
    if (key === undefined) return [];
    const then = limitsThen(key, edits);
    return groupsOf('key', id, edit, key.limits, then).map((one) => ({ key: id, ...one }));
  });
  const all = [...ofPlans, ...ofKeys];
  return all.length === 0 ? {} : { notReplayed: all };
}

const trialCounts = 'A trial counts them to the unit, and refuses nothing.';

function otherOperations(group: string): string {
  return `The usage record has the operations of the group ${group} only by the hour, because no group had just these operations until now. ${trialCounts}`;
}

function olderRequests(group: string): string {
  return `The usage record has the operations of the group ${group} only by the hour until the group exists. ${trialCounts}`;
}

function editsOf(
  stated: Readonly<Record<string, z.output<typeof limitEdit>>>,
): ReadonlyMap<string, LimitEdit> {
  return new Map(
    Object.entries(stated).map(([name, { groups, ...byField }]) => {
      const ofGroups = Object.entries(groups ?? {}).map(([group, change]) => {
        if (change === null) return [group, null] as const;
        const { operations, ...ofGroup } = change;
        return [group, { ...windowEditsIn(ofGroup), ...(operations && { operations }) }] as const;
      });
      return [name, { ...windowEditsIn(byField), ...(groups && { groups: Object.fromEntries(ofGroups) }) }];
    }),
  );
}

function windowEditsIn(byField: { readonly [Field in LimitField]?: number | null | undefined }) {
  const edit: { [Window in PlanWindow]?: number | null } = {};
  for (const window of planWindows) {
    const max = byField[limitFieldOf[window]];
    if (max !== undefined) edit[window] = max;
  }
  return edit;
}
