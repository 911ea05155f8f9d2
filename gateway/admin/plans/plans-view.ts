import type * as z from 'zod';
import { plansInForce } from '../../keys/key-table.ts';
import { planNameAt } from '../../keys/plans/compile-key.ts';
import type { Settings } from '../../shared/model.ts';
import { foundResponse } from '../admin-response.ts';
import { lacksData } from '../api/missing-data.ts';
import { defineRoute, type Route } from '../api/route.ts';
import type { KeySources } from '../keys/key-sources.ts';
import { planView } from '../settings/settings-view.ts';
import { listPlansWire, type plansPage } from '../wires/plans/plans.ts';

interface KeyCounts {
  readonly byPlan: ReadonlyMap<string, { keys: number; disabledKeys: number }>;
  /** False when the directory has more keys than were read. */
  readonly isComplete: boolean;
}

type CountSources = Pick<
  KeySources,
  'settings' | 'directory' | 'readHeldKeys' | 'planFigures' | 'nowMs' | 'bounds'
>;

/** `GET /plans` */
export function plansRoute(sources: CountSources): Route {
  const plansView = createPlansView(sources);
  return defineRoute({
    ...listPlansWire,
    needs: 'read',
    respond: async () => foundResponse(await plansView()),
  });
}

/**
 * Lists every plan with its limits and the number of its keys, in the order of the configuration. The numbers include
 * every key of the configuration and the first `adminKeysExaminedMax` keys of the directory. The numbers are cached
 * for a short time.
 *
 * @returns undefined when the directory does not reply
 */
export function createPlansView(
  sources: CountSources,
): () => Promise<z.output<typeof plansPage> | undefined> {
  const { settings, bounds } = sources;
  let kept: { readonly of: Settings; readonly untilMs: number; readonly counts: KeyCounts } | undefined;

  return async () => {
    const inForce = settings();
    if (kept?.of !== inForce || kept.untilMs <= performance.now()) {
      const counts = await countKeys(sources);
      if (counts === undefined) return undefined;
      // An incomplete response is not kept, so that each response says what it lacks.
      const keptMs = lacksData() ? 0 : bounds.planDistributionKeptMs;
      kept = { of: inForce, untilMs: performance.now() + keptMs, counts };
    }
    const { byPlan, isComplete } = kept.counts;
    const figures = await sources.planFigures?.();
    return {
      plans: [...plansInForce(inForce).values()].map((plan) => ({
        ...planView(plan),
        ...(byPlan.get(plan.name) ?? { keys: 0, disabledKeys: 0 }),
        ...figures?.get(plan.name),
      })),
      isComplete,
    };
  };
}

/** Counts the keys of each plan. Without the directory, the keys that this gateway has cached or read before are counted. */
async function countKeys({
  settings,
  directory,
  readHeldKeys,
  nowMs,
  bounds,
}: CountSources): Promise<KeyCounts | undefined> {
  const { keys, plans } = settings();
  const byPlan = new Map([...plans.keys()].map((name) => [name, { keys: 0, disabledKeys: 0 }]));
  const count = (plan: string, isDisabled: boolean) => {
    const counted = byPlan.get(plan);
    if (counted === undefined) return;
    counted.keys += 1;
    if (isDisabled) counted.disabledKeys += 1;
  };
  keys.tally(count);
  if (directory === undefined) return { byPlan, isComplete: true };

  let after: string | undefined = '';
  for (let examined = 0; after !== undefined && examined < bounds.adminKeysExaminedMax; ) {
    const page = await directory.page({ after, limit: bounds.usageReadsPerTurnMax });
    const read = page.kind === 'page' ? await directory.readMany(page.ids) : page;
    if (page.kind !== 'page' || read.kind !== 'found') return undefined;
    const unread = page.ids.filter((_, index) => read.keys[index] === 'unknown');
    const held = (await readHeldKeys?.(unread)) ?? [];
    for (const key of [...read.keys.filter((key) => key !== 'unknown'), ...held.map((one) => one?.key)]) {
      // A directory key with the id of a configured key is skipped, because `tally` has already counted the
      // configured key.
      if (key !== undefined && !keys.has(key.id)) count(planNameAt(key, nowMs()), key.disabled);
    }
    examined += page.ids.length;
    after = page.next;
  }
  return { byPlan, isComplete: after === undefined };
}
