import { plansInForce } from '../../keys/key-table.ts';
import { maxOf } from '../../shared/limits.ts';
import type { PlanWindow, Settings } from '../../shared/model.ts';
import { rememberLast } from '../../shared/structures/remember-last.ts';
import { minuteMs } from '../../shared/words/figures.js';
import { type KeyMinutes, offeredAt, offeredUnitsAt } from '../../usage/read/key-minutes.ts';
import { errorResponse, foundResponse } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import type { KeySources } from '../keys/key-sources.ts';
import {
  getPlanDistributionWire,
  type PlanDistribution,
  type ReadPlanDistribution,
  type Spread,
} from '../wires/plans/figures.ts';
import { activeKeysOf, createKeptResults, readUntilDeadline } from './plan-keys.ts';

/** `GET /plans/{name}/distribution` */
export function distributionRoute(sources: KeySources): Route {
  const distributionOf = createPlanDistributions(sources);
  return defineRoute({
    ...getPlanDistributionWire,
    needs: 'read',
    readsCounts: true,
    async respond({ params: { name = '' }, query: { hours } }) {
      if (!sources.settings().plans.has(name))
        return errorResponse('not_found', 'There is no plan with this name.');
      return foundResponse(await distributionOf(name, hours));
    },
  });
}

/** The number of keys whose usage records are read at the same time. For each key, up to two days are read. */
const keysPerTurn = 10;

/**
 * Computes the distribution from every minute of every active key of a plan. The computation is expensive, so its time
 * is limited and the result is cached for a short time. The admin API serves tokens in turn, which limits the number of
 * concurrent computations. The result is undefined when the store does not reply.
 */
export function createPlanDistributions(sources: Omit<KeySources, 'readStatus'>): ReadPlanDistribution {
  const { settings, usage, nowMs, bounds } = sources;
  const kept = createKeptResults<PlanDistribution>(bounds);

  return (plan, hours) => kept(JSON.stringify([plan, hours, settings().version]), () => make(plan, hours));

  async function make(plan: string, hours: number): Promise<PlanDistribution | undefined> {
    const toMs = nowMs();
    const fromMs = (Math.floor(toMs / minuteMs) - 60 * hours + 1) * minuteMs;
    const ofPlan = await activeKeysOf(sources, plan, fromMs);
    if (ofPlan === undefined) return undefined;
    const ids = ofPlan.map(({ key }) => key.id);
    const issued = ofPlan.filter(({ source }) => source === 'directory').length;
    const peaks = await peaksOf(ids, { fromMs, toMs });
    if (peaks === undefined) return undefined;
    const limits = plansInForce(settings()).get(plan)?.limits;
    const spreadOf = (window: PlanWindow, unitsOf: (peak: KeyPeak) => number): Spread => {
      const limit = limits && maxOf(limits, { window, group: undefined });
      return { limit, buckets: bucketsOf(peaks.map(unitsOf), limit) };
    };
    return {
      plan,
      hours,
      keys: (keysByPlan(settings()).get(plan) ?? 0) + issued,
      activeKeys: ids.length,
      examinedKeys: peaks.length,
      refusedKeys: peaks.filter(({ offered, admitted }) => admitted < offered).length,
      minute: spreadOf('minute', ({ busiestMinute }) => busiestMinute),
      day: spreadOf('day', ({ offeredUnits }) => offeredUnits),
      hasCosts: peaks.some(({ hasCosts }) => hasCosts) || undefined,
    };
  }

  function peaksOf(ids: readonly string[], period: { fromMs: number; toMs: number }) {
    const read = async (part: readonly string[]) =>
      (await usage?.reader.minutesOf(part, period))?.map(peakOf);
    return readUntilDeadline(ids, keysPerTurn, read, bounds);
  }
}

interface KeyPeak {
  /** The units of the offered requests in the key's busiest minute. */
  readonly busiestMinute: number;
  readonly offered: number;
  readonly offeredUnits: number;
  readonly admitted: number;
  readonly hasCosts: boolean;
}

function peakOf(minutes: KeyMinutes): KeyPeak {
  let [busiestMinute, offered, offeredUnits, admitted] = [0, 0, 0, 0];
  for (let place = 0; place < minutes.minute.length; place++) {
    const here = offeredUnitsAt(minutes, place);
    if (here > busiestMinute) busiestMinute = here;
    offeredUnits += here;
    offered += offeredAt(minutes, place);
    admitted += minutes.admitted[place] ?? 0;
  }
  return { busiestMinute, offered, offeredUnits, admitted, hasCosts: minutes.costs !== undefined };
}

/** Counts the keys of each plan, once for each configuration. */
const keysByPlan = rememberLast(({ keys }: Settings): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  keys.tally((plan) => void counts.set(plan, (counts.get(plan) ?? 0) + 1));
  return counts;
});

/**
 * Counts the keys in each bucket. The buckets begin at 1, 2, 5, 10, 20, 50 and so on. The bucket that contains the
 * limit ends at the limit, and a further bucket begins above the limit. Keys with less than 1 unit are not counted.
 */
export function bucketsOf(units: readonly number[], limit = 0): Spread['buckets'] {
  const counted = units.filter((one) => one >= 1);
  if (counted.length === 0) return [];
  const [least, most] = [Math.min(...counted), Math.max(...counted)];
  const bounds = [1];
  for (let step = 1; (bounds.at(-1) ?? 0) <= most; step++) {
    const [before, next] = [valueAt(step - 1), valueAt(step)];
    if (limit + 1 > before && limit + 1 < next) bounds.push(limit + 1);
    bounds.push(next);
  }
  const buckets = bounds.slice(1).map((to, index) => ({ from: bounds[index] ?? 1, to, keys: 0 }));
  for (const one of counted) {
    const bucket = buckets.findLast(({ from }) => from <= one);
    if (bucket) bucket.keys += 1;
  }
  return buckets.filter(({ from, to }) => to > least && from <= most);
}

function valueAt(step: number): number {
  return 10 ** Math.floor(step / 3) * ([1, 2, 5][step % 3] ?? 1);
}
