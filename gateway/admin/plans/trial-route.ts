import { plansInForce } from '../../keys/key-table.ts';
import { toLimitFields } from '../../keys/limits/limit-fields.ts';
import type { Limits } from '../../shared/model.ts';
import { isoOf, isoSecondOf, type Period } from '../../shared/schema/dates-and-durations.ts';
import { periodOf } from '../../shared/schema/query-parameters.ts';
import { sumOfTrials, type TrialUsage } from '../../usage/read/trial-reader.ts';
import { errorResponse, foundResponse } from '../admin-response.ts';
import { defineRoute, type Route } from '../api/route.ts';
import type { ListedKey } from '../keys/find-keys.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { keptPeriod } from '../operations/kept-period.ts';
import { getPlanTrialWire, type PlanTrial } from '../wires/plans/figures.ts';
import { activeKeysOf, createKeptResults, readUntilDeadline } from './plan-keys.ts';
import { figuresOf, trialSentence } from './trial-figures.ts';

/** The number of keys whose usage records are read at the same time. A trial has few fields in each record. */
const keysPerTurn = 100;

/** `GET /plans/{name}/trial` */
export function trialRoute(sources: KeySources): Route {
  const trialOf = createPlanTrials(sources);
  return defineRoute({
    ...getPlanTrialWire,
    needs: 'read',
    readsCounts: true,
    async respond({ params: { name = '' }, query }) {
      const { settings, usage, nowMs } = sources;
      const period = periodOf(query, nowMs());
      if ('kind' in period) return errorResponse('invalid_request', period.message);
      const plan = plansInForce(settings()).get(name);
      if (plan === undefined) return errorResponse('not_found', 'There is no plan with this name.');
      if (plan.trial === undefined)
        return errorResponse(
          'not_found',
          'There is no trial in this plan. Write `trial: { perMinute: 40 }` in the plan, with all limits of the trial.',
        );
      if (usage === undefined) {
        const message =
          'There is no record of the decisions of the trial, because `usage.keepDays` is 0. The metric tollgate_trial_refused_total counts the refusals.';
        return errorResponse('not_found', message);
      }
      const isUsual = query.from === undefined && query.to === undefined;
      const found = await trialOf(name, plan.trial, period, isUsual);
      return foundResponse(found && { ...found, ...listed(found.keys, query.limit) });
    },
  });
}

function listed(keys: PlanTrial['keys'], limit: number): Pick<PlanTrial, 'keys' | 'more'> {
  return { keys: keys.slice(0, limit), more: keys.length > limit ? keys.length - limit : undefined };
}

/**
 * Adds up the decisions of a plan's trial on the requests of its keys. The time of the reads is limited. The result of
 * the usual period, the last 24 hours, is cached for a short time, because an open page repeats the request. The
 * result is undefined when the store does not reply.
 */
function createPlanTrials(sources: KeySources) {
  const { settings, usage, nowMs, bounds } = sources;
  const kept = createKeptResults<PlanTrial>(bounds);

  return (plan: string, trial: Limits, period: Period, isUsual: boolean) => {
    const read = () => make(plan, trial, period);
    return isUsual ? kept(JSON.stringify([plan, settings().version]), read) : read();
  };

  async function make(plan: string, trial: Limits, asked: Period): Promise<PlanTrial | undefined> {
    if (usage === undefined) return undefined;
    const period = keptPeriod(asked, usage.state(), nowMs());
    const active = await activeKeysOf(sources, plan, period.fromMs);
    if (active === undefined) return undefined;
    const ids = active.map(({ key }) => key.id);
    const read = (part: readonly string[]) => usage.reader.trialOf(part, trial, period);
    const used = await readUntilDeadline(ids, keysPerTurn, read, bounds);
    if (used === undefined) return undefined;
    const decided = used.flatMap((usage, index) => {
      const listed = active[index];
      return listed === undefined || usage.requests === 0 ? [] : [{ listed, usage }];
    });
    const refused = decided.filter(({ usage }) => usage.refused > 0).sort(byHarm);
    const newlyRefused = refused.filter(({ usage }) => usage.refusedNow === 0).length;
    const sum = sumOfTrials(decided.map(({ usage }) => usage));
    return {
      plan,
      limits: toLimitFields(trial),
      limitsNow: toLimitFields(plansInForce(settings()).get(plan)?.limits ?? []),
      fromAt: isoOf(period.fromMs),
      toAt: isoOf(period.toMs),
      firstAt: sum.firstMs === undefined ? undefined : isoSecondOf(sum.firstMs),
      sentence: trialSentence(trial, sum, { all: decided.length, refused: refused.length, newlyRefused }),
      ...figuresOf(sum),
      triedKeys: decided.length,
      refusedKeys: refused.length,
      newlyRefusedKeys: newlyRefused,
      activeKeys: active.length,
      examinedKeys: used.length,
      keys: refused.map(({ listed, usage }) => ({
        id: listed.key.id,
        name: listed.key.name,
        ...figuresOf(usage),
      })),
    };
  }
}

interface TriedKey {
  readonly listed: ListedKey;
  readonly usage: TrialUsage;
}

function byHarm({ usage: a }: TriedKey, { usage: b }: TriedKey): number {
  const harm = (usage: TrialUsage) => usage.refused - usage.refusedNow;
  return harm(b) - harm(a) || b.refused - a.refused;
}
