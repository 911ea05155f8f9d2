import { limitFieldOf } from '../../../keys/limits/limit-fields.ts';
import { type PlanAdvice, planWindows } from '../../../shared/model.ts';
import { counted, figure } from '../../../shared/words/figures.js';
import { adviceWords } from '../../lists/configuration.ts';
import { isUncertain } from '../words.js';

import type { AskedSimulation, Simulation } from './ask-simulation.ts';
import type { EditByField, LaterEdit, LimitEdits } from './edits-between.ts';

/** The simulated effect of an edited limit. `PlanAdvice` is present if the verdict covers the whole edit of a plan. */
export interface LimitVerdict extends PlanAdvice {
  readonly plan?: string;
  readonly key?: string;
  /** The window of the limit. The field is absent if all edits of the plan or key were simulated together. */
  readonly window?: string;
  /** The time of a scheduled change of a plan, whose limits were simulated on the recorded requests. */
  readonly from?: string;
  /** The number of keys with this limit, the number of keys with more refusals, and the number of additional refusals. */
  readonly affectedKeys: number;
  readonly keysRefusedMore: number;
  readonly requestsRefusedMore: number;
  readonly keysRefusedLess: number;
  readonly requestsRefusedLess: number;
  /**
   * The number of keys whose result depends on the order of requests, which the usage record does not contain. The order matters for bans,
   * limits per second and operations with different costs.
   */
  readonly keysUncertain: number;
  /** Set if the replay of the record differs from the record, so that the figures are an estimate. */
  readonly minutesThatDiffer?: number;
  /** The edited groups that were not simulated, each with a sentence and a proposed trial. */
  readonly notReplayed?: Simulation['notReplayed'];
  /** Whether the simulation left out the whole edit, so that the other figures have no meaning. */
  readonly isLeftOut?: true;
  /** Whether some results are uncertain because of groups. */
  readonly hasGroups?: true;
}

export const verdictDays = 7;

/**
 * Simulates each edited limit, and all edited limits of a plan together.
 *
 * @param keysOn the number of keys on a plan
 * @param later later changes of plans, each of which is simulated as a whole
 */
export async function verdictsOf(
  { plans = {}, keys = {} }: LimitEdits,
  ask: (asked: AskedSimulation) => Promise<Simulation>,
  keysOn: (plan: string) => number,
  later: readonly LaterEdit[] = [],
): Promise<readonly LimitVerdict[]> {
  const verdicts: LimitVerdict[] = [];
  for (const { plan, from, edit } of later) {
    const found = await ask({ plans: { [plan]: edit } });
    verdicts.push({
      plan,
      from,
      affectedKeys: keysOn(plan),
      ...changesOf(found.keys),
      ...estimateIn(found),
      ...adviceOn(found),
      ...groupsIn(found, edit),
    });
  }
  for (const [plan, edit] of Object.entries(plans)) {
    const single = singleEdits(edit);
    for (const [window, one] of single) {
      const found = await ask({ plans: { [plan]: one } });
      const ofWhole = single.length === 1 ? adviceOn(found) : {};
      verdicts.push({
        ...{ plan, window, affectedKeys: keysOn(plan) },
        ...{ ...changesOf(found.keys), ...estimateIn(found), ...ofWhole, ...groupsIn(found, one) },
      });
    }
    if (single.length < 2) continue;
    const together = await ask({ plans: { [plan]: edit } });
    verdicts.push({
      plan,
      affectedKeys: keysOn(plan),
      ...changesOf(together.keys),
      ...estimateIn(together),
      ...adviceOn(together),
      ...(together.hasGroups && { hasGroups: true }),
    });
  }
  if (Object.keys(keys).length === 0) return verdicts;
  // One simulation of all keys is enough, because the result of a key does not depend on other keys.
  const found = await ask({ plans, keys });
  for (const [key, edit] of Object.entries(keys)) {
    const ofKey = found.notReplayed?.filter((group) => group.key === key) ?? [];
    const { notReplayed, ...all } = found;
    verdicts.push({
      ...{ key, affectedKeys: 1, ...changesOf(found.keys.filter(({ id }) => id === key)) },
      ...groupsIn({ ...all, ...(ofKey.length > 0 && { notReplayed: ofKey }) }, edit),
    });
  }
  return verdicts;
}

function estimateIn({ reproduced }: Simulation): Pick<LimitVerdict, 'minutesThatDiffer'> {
  const { minutesThatDiffer } = reproduced;
  return minutesThatDiffer === 0 ? {} : { minutesThatDiffer };
}

/** Splits an edit by window. An edit that removes a limit is not split, because one part alone could leave a plan without limits. */
function singleEdits(whole: EditByField): readonly (readonly [window: string, edit: EditByField])[] {
  const { groups = {}, ...edit } = whole;
  const ofWindows = planWindows.flatMap((window) => {
    const max = edit[limitFieldOf[window]];
    return max === undefined ? [] : [[window, { [limitFieldOf[window]]: max } as EditByField] as const];
  });
  const ofGroups = Object.entries(groups).map(
    ([name, change]) => [`group ${name}`, { groups: { [name]: change } }] as const,
  );
  const edits = [...ofWindows, ...ofGroups];
  return edits.some(([, one]) => Object.values(one).includes(null))
    ? [[edits.map(([window]) => window).join(' and '), whole]]
    : edits;
}

/** Returns what the simulation of an edit says about groups. */
function groupsIn(
  { notReplayed, hasGroups }: Simulation,
  { groups = {}, ...edit }: EditByField,
): Pick<LimitVerdict, 'notReplayed' | 'isLeftOut' | 'hasGroups'> {
  const leftOut = notReplayed?.filter(({ isPartly }) => !isPartly).map(({ group }) => group) ?? [];
  const hasOtherEdits =
    Object.values(edit).some((max) => max !== undefined) ||
    Object.keys(groups).some((name) => !leftOut.includes(name));
  return {
    ...(notReplayed && { notReplayed }),
    ...(!hasOtherEdits && { isLeftOut: true }),
    ...(hasGroups && { hasGroups }),
  };
}

/** Whether an edited group of a plan is recorded only by the hour, so that its refusals are not known. */
export function hasUnrecordedGroup(verdicts: readonly LimitVerdict[], plan: string): boolean {
  return verdicts.some(
    (verdict) => verdict.plan === plan && verdict.notReplayed?.some(({ isPartly }) => !isPartly),
  );
}

/** What capabilities add to the plan of a simulation that edits one plan. */
function adviceOn({ plans: [plan] }: Simulation): PlanAdvice {
  const isAdvice = (name: string) => adviceWords.some(({ figures }) => Object.hasOwn(figures, name));
  const advice = Object.entries(plan ?? {}).filter(([name]) => isAdvice(name));
  return Object.fromEntries(advice);
}

export function changesOf(keys: Simulation['keys']) {
  const certain = keys.filter((key) => !isUncertain(key));
  const changes = certain.map(({ refusedThen, refusedNow }) => refusedThen - refusedNow);
  const [more, less] = [changes.filter((change) => change > 0), changes.filter((change) => change < 0)];
  const sum = (all: readonly number[]) => all.reduce((total, change) => total + Math.abs(change), 0);
  return {
    keysRefusedMore: more.length,
    requestsRefusedMore: sum(more),
    keysRefusedLess: less.length,
    requestsRefusedLess: sum(less),
    keysUncertain: keys.length - certain.length,
  };
}

/** Makes a sentence such as "affects 14 keys; in the last 7 days 3 of them would have been refused 1,204 more requests". */
export function verdictText(verdict: LimitVerdict): string {
  const {
    affectedKeys,
    keysRefusedMore,
    requestsRefusedMore,
    keysRefusedLess,
    requestsRefusedLess,
    keysUncertain,
    hasGroups,
    key,
    minutesThatDiffer = 0,
  } = verdict;
  const who = (keys: number) => (key === undefined ? `${figure(keys)} of them` : 'it');
  const uncertain = `more or less often, depending on bans, limits per second${hasGroups ? ', mixed costs or groups' : ' or mixed costs'}`;
  const found = [
    { keys: keysRefusedMore, what: counted(requestsRefusedMore, 'more request') },
    { keys: keysRefusedLess, what: counted(requestsRefusedLess, 'fewer request') },
    { keys: keysUncertain, what: uncertain },
  ];
  const parts = found
    .filter(({ keys }) => keys > 0)
    .map(({ keys, what }, index) => `${who(keys)} ${index === 0 ? 'would have been refused ' : ''}${what}`);
  const what = parts.length === 0 ? 'as many requests would have been refused' : parts.join(', ');
  const affects = key === undefined ? `affects ${counted(affectedKeys, 'key')}; ` : '';
  const estimate = `; an estimate, because the replay differs from the record in ${counted(minutesThatDiffer, 'minute')}`;
  return `${affects}in the last ${verdictDays} days ${what}${minutesThatDiffer > 0 ? estimate : ''}`;
}
