import type { Command } from 'commander';
import type * as z from 'zod';
import { limitsInView } from '../../admin/settings/settings-view.ts';
import { listPlansWire, type plansPage, retryPlanWire } from '../../admin/wires/plans/plans.ts';
import { reasonText, revertedLimitsText } from '../../fleet/guard/revert-text.ts';
import { limitsText } from '../../fleet/wording.ts';
import { toLimitFields, toLimits } from '../../keys/limit-fields.ts';
import { wrapText } from '../../shared/terminal/text-width.ts';
import { figure, percent } from '../../shared/words/figures.js';
import { type Asking, clientOf, examples, show, withGateway } from '../command.ts';
import { instant } from '../output/figures.ts';
import type { Screen } from '../output/screen.ts';
import { type Cell, table } from '../output/table.ts';
import { ofPlan } from './read-api.ts';

type PlansShown = z.output<typeof plansPage>;
type PlanShown = PlansShown['plans'][number];

/** Adds the commands about plans: the list with the states of guards, and the end of a revert. */
export function addPlanCommands(program: Command): void {
  const plans = asking(program.command('plans'))
    .description('list the plans with their limits, their keys and the states of their guards')
    .enablePositionalOptions()
    .addHelpText('after', examples('plans', 'plans --json'))
    .action(async (options: Asking) => {
      show(options, await clientOf(options).ask(listPlansWire), plansLines);
    });

  asking(plans.command('retry'))
    .argument('<plan>', 'the name of the plan')
    .description('let a plan that its guard has reverted try its edit again; the watch starts from zero')
    .addHelpText('after', examples('plans retry free'))
    .action(async (name: string, options: Asking) => {
      const client = clientOf(options);
      const reply = await ofPlan(client, name, () => client.ask(retryPlanWire, { params: { name } }));
      show(options, reply, ({ plan, limits }) => [
        `The plan ${plan} tries its edit again: ${limitsText(toLimits(limits))}.`,
      ]);
    });
}

function asking(command: Command): Command {
  return withGateway(command).option('--json', 'print the response of the admin API as one JSON document');
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
