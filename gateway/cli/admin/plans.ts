import type * as z from 'zod';
import { limitsInView } from '../../admin/settings/settings-view.ts';
import { listPlansWire, type plansPage, retryPlanWire } from '../../admin/wires/plans/plans.ts';
import { reasonText, revertedLimitsText } from '../../fleet/guard/revert-text.ts';
import { limitsText } from '../../fleet/wording.ts';
import { toLimitFields, toLimits } from '../../keys/limit-fields.ts';
import { wrapText } from '../../shared/terminal/text-width.ts';
import { figure, percent } from '../../shared/words/figures.js';
import type { Asking } from '../command.ts';
import { instant } from '../output/figures.ts';
import type { Screen } from '../output/screen.ts';
import { show } from '../output/show.ts';
import { type Cell, table } from '../output/table.ts';
import { clientOf } from './find-gateway.ts';
import { ofPlan } from './read/read-plan.ts';

type PlansShown = z.output<typeof plansPage>;
type PlanShown = PlansShown['plans'][number];

/** Prints the plans with their limits, their keys and the states of their guards. */
export async function listPlans(options: Asking): Promise<void> {
  const client = await clientOf(options);
  show(options, await client.ask(listPlansWire), plansLines);
}

/** Lets a reverted plan try its edit again. */
export async function retryPlan(name: string, options: Asking): Promise<void> {
  const client = await clientOf(options);
  const reply = await ofPlan(client, name, () => client.ask(retryPlanWire, { params: { name } }));
  show(options, reply, ({ plan, limits }) => [
    `The plan ${plan} tries its edit again: ${limitsText(toLimits(limits))}.`,
  ]);
}

function plansLines({ plans, isComplete }: PlansShown, screen: Screen): readonly string[] {
  const lines = table<PlanShown>(
    [
      { title: 'PLAN', cell: ({ name }) => name, cutsTo: 8 },
      { title: 'LIMITS', cell: ({ isCustom, windows }) => (isCustom ? 'of each key' : windowsText(windows)) },
      { title: 'KEYS', cell: ({ keys }) => keys, align: 'right' },
      { title: 'GUARD', cell: guardCell, isOptional: true },
    ],
    plans,
    screen,
  );
  const reverts = plans.flatMap(({ name, windows, reverted }) => {
    if (reverted === undefined) return [];
    const change = revertedLimitsText({ edit: reverted.edit, inForce: toLimitFields(limitsInView(windows)) });
    const text = `The guard reverted ${name} at ${instant(reverted.sinceAt)} UTC (${change}), because ${reasonText(reverted)}.`;
    return wrapText(text, screen.columns);
  });
  const rest = isComplete ? [] : ['The key directory has more keys than are counted here.'];
  return [...lines, ...reverts, ...rest];
}

function guardCell({ guard, reverted, watched }: PlanShown): Cell {
  if (guard === undefined) return { text: '' };
  if (reverted !== undefined) return { text: 'reverted', tone: 'bad' };
  if (Date.parse(guard.untilAt) <= Date.now()) return { text: 'ended' };
  if (watched === undefined) return { text: 'watches no limit now' };
  const { requests, refused } = watched;
  const share = requests === 0 ? '0 %' : percent(refused / requests);
  return { text: `refused ${share} of ${figure(requests)} requests, at most ${guard.refusedAtMost}` };
}

function windowsText(windows: PlanShown['windows']): string {
  return limitsText(limitsInView(windows));
}
