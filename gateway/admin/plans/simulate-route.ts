import * as z from 'zod';
import { smallerLimits } from '../../keys/guards.ts';
import { date, keyId, limit, operationIds } from '../../keys/key-schema.ts';
import { plansInForce } from '../../keys/key-table.ts';
import {
  type LimitField,
  limitFieldNames,
  limitFieldOf,
  limitsAsYaml,
  ofEachLimitField,
} from '../../keys/limit-fields.ts';
import { type Key, type PlanWindow, planWindows } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import { expects, fields, membersByName, text, wholeNumber } from '../../shared/schema/schema-parts.ts';
import { type Edits, edited, type LimitEdit, type Present, problemOf } from '../../usage/simulate/edits.ts';
import { explainDifference } from '../../usage/simulate/explain-difference.ts';
import { unreplayableGroups } from '../../usage/simulate/replay-groups.ts';
import type { Difference, PlanTotals } from '../../usage/simulate/verdict.ts';
import { errorResponse, jsonResponse, storeUnavailable } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import { findKeys } from '../keys/find-keys.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { type CircumstanceSources, readCircumstances } from './circumstances.ts';
import { proposeGuard } from './propose-guard.ts';
import { createSimulations, type simulationShown } from './simulations.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const keysListedMax = 1_000;

const editedLimit = z.union(
  [limit, z.null()],
  expects('a whole number from 1 to 999999999999999, or null for no limit'),
);
const windowEdits = ofEachLimitField(editedLimit.optional());
const groupEdit = z.union(
  [
    fields(`an object with some of operations, ${limitFieldNames.join(', ')}`, {
      operations: operationIds
        .optional()
        .describe('The operations of a new group, or other operations of a group.'),
      ...windowEdits,
    }),
    z.null(),
  ],
  expects('an object with limits, or null for no group'),
);
const limitEdit = fields(`an object with some of ${limitFieldNames.join(', ')}, groups`, {
  ...windowEdits,
  groups: membersByName(text('the name of a group'), groupEdit, 'an object of limits by group')
    .optional()
    .describe('New limits by the name of a group of operations. null removes a group.'),
});
const milliseconds = wholeNumber(1, 1e12);

export const simulateBody = fields('an object with plans and keys, the limits to try', {
  from: date
    .optional()
    .describe(
      'The beginning of the period. By default 24 hours before `to`, but not before the beginning of the usage record.',
    ),
  to: date
    .optional()
    .describe('The end of the period, which includes the whole minute of this time. By default now.'),
  plans: membersByName(text('the name of a plan'), limitEdit, 'an object of limits by plan')
    .default({})
    .describe(
      'New limits by the name of a plan. Windows that are not named stay unchanged. null removes a limit.',
    ),
  keys: membersByName(keyId, limitEdit, 'an object of limits by the id of a key')
    .default({})
    .describe('New limits by the id of a key. They override the limits of its plan.'),
  bans: fields('an object with after, withinMs, forMs and maxMs', {
    after: limit,
    withinMs: milliseconds,
    forMs: milliseconds,
    maxMs: milliseconds,
  })
    .optional()
    .describe('The rules for bans, in place of the configured rules.'),
  plan: text('the name of a plan').optional().describe('Simulate only keys of this plan.'),
  minutesOf: keyId.optional().describe('The response also has each minute of this key.'),
  listed: wholeNumber(0, keysListedMax).default(keysListedMax).describe('The largest number of listed keys.'),
  after: keyId.optional().describe('The `next` of the previous part.'),
  until: keyId
    .optional()
    .describe('The last key of this part: the `next` of the same part in an earlier response.'),
});

export interface SimulateSources extends CircumstanceSources {
  readonly keys: Omit<KeySources, 'readStatus'>;
}

/** `POST /simulate` replays the recorded requests under other limits. The simulation changes nothing. */
export function simulateRoute({ keys, ...circumstances }: SimulateSources): Route {
  const { bounds } = keys;
  const simulate = createSimulations(keys);
  return defineRoute({
    method: 'POST',
    path: '/simulate',
    needs: 'read',
    readsCounts: true,
    body: simulateBody,
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
      const { period, verdict, ...rest } = simulated;
      const differences = await explained(verdict.reproduced.differences, period.fromMs);
      if (differences === undefined) return storeUnavailable();
      return jsonResponse({
        from: isoOf(period.fromMs),
        to: isoOf(period.toMs),
        source: 'record',
        ...verdict,
        guards: guardsFor(edits, present, verdict.plans),
        ...notReplayedIn(edits, present, (id) => byId.get(id)),
        reproduced: { ...verdict.reproduced, differences },
        ...rest,
      } satisfies z.output<typeof simulationShown>);
    },
  });

  /** Adds the reason to each difference between the replay and the record. The result is undefined when the store does not reply. */
  async function explained(differences: readonly Difference[], fromMs: number) {
    if (differences.length === 0) return [];
    const found = await findKeys(keys, [...new Set(differences.flatMap(({ of }) => of))]);
    if (found === undefined) return undefined;
    const plans = new Map(found.map(({ key: { id, plan } }) => [id, plan]));
    const known = await readCircumstances(circumstances, fromMs, bounds);
    return differences.map((one) => {
      const ofMinute = one.of.map((id) => ({ id, plan: plans.get(id) }));
      return { ...one, why: explainDifference(one.at, ofMinute, known) };
    });
  }

  /** Proposes a guard for each plan that gets a smaller limit. */
  function guardsFor(
    edits: Edits,
    present: Present,
    simulated: readonly PlanTotals[],
  ): Record<string, string> {
    if (edits.plans.size > bounds.simulationGuardsMax) return {};
    const guards = [...edits.plans].flatMap(([name, edit]) => {
      const limits = present.plans.get(name)?.limits ?? [];
      if (smallerLimits(limits, edited(limits, edit)).length === 0) return [];
      const share = simulated.find((plan) => plan.name === name)?.guardShare ?? 0;
      return [[name, proposeGuard(limits, share, keys.nowMs())]];
    });
    return Object.fromEntries(guards);
  }
}

/** Returns the edited groups whose operations are recorded only by the hour, and a trial in place of the simulation. */
function notReplayedIn(
  edits: Edits,
  present: Present,
  keyOf: (id: string) => Key | undefined,
): Pick<z.output<typeof simulationShown>, 'notReplayed'> {
  const why = (group: string) =>
    `The usage record has the operations of the group ${group} only by the hour, because no group had just these operations until now. A trial counts them to the unit, and refuses nothing.`;
  const ofPlans = [...edits.plans].flatMap(([plan, edit]) => {
    const limits = present.plans.get(plan)?.limits ?? [];
    const then = edited(limits, edit);
    const trial = `trial: ${limitsAsYaml(then)}`;
    return unreplayableGroups(limits, then).map((group) => ({ plan, group, why: why(group), trial }));
  });
  const ofKeys = [...edits.keys].flatMap(([key, edit]) => {
    const limits = keyOf(key)?.limits ?? [];
    return unreplayableGroups(limits, edited(limits, edit)).map((group) => ({ key, group, why: why(group) }));
  });
  const all = [...ofPlans, ...ofKeys];
  return all.length === 0 ? {} : { notReplayed: all };
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
