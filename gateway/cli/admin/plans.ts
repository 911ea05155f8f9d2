import type * as z from 'zod';
import { limitsInView } from '../../admin/settings/settings-view.ts';
import { listPlansWire, type plansPage } from '../../admin/wires/plans/plans.ts';
import type { PlanRows } from '../../capabilities/interfaces/commands.ts';
import { planRows } from '../../capabilities/lists/commands.ts';
import { limitsText } from '../../keys/limits/limit-texts.ts';
import type { Asking } from '../command.ts';
import type { Screen } from '../output/screen.ts';
import { show } from '../output/show.ts';
import { table } from '../output/table.ts';
import { clientOf } from './find-gateway.ts';

type PlansShown = z.output<typeof plansPage>;
type PlanShown = PlansShown['plans'][number];

export async function listPlans(options: Asking): Promise<void> {
  const client = await clientOf(options);
  const reply = await client.ask(listPlansWire);
  const rows = await Promise.all(planRows.map((load) => load()));
  show(options, reply, (body, screen) => plansLines(body, rows, screen));
}

function plansLines(
  { plans, isComplete }: PlansShown,
  rows: readonly PlanRows[],
  screen: Screen,
): readonly string[] {
  const lines = table<PlanShown>(
    [
      { title: 'PLAN', cell: ({ name }) => name, cutsTo: 8 },
      { title: 'LIMITS', cell: ({ isCustom, windows }) => (isCustom ? 'of each key' : windowsText(windows)) },
      { title: 'KEYS', cell: ({ keys }) => keys, align: 'right' },
      ...rows.map(({ column }) => column),
    ],
    plans,
    screen,
  );
  const ofRows = plans.flatMap((plan) => rows.flatMap((row) => row.lines(plan, screen)));
  const rest = isComplete ? [] : ['The key directory has more keys than are counted here.'];
  return [...lines, ...ofRows, ...rest];
}

function windowsText(windows: PlanShown['windows']): string {
  return limitsText(limitsInView(windows));
}
