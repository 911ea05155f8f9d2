import { ofPlan } from '../../cli/admin/read-api.ts';
import { type Asking, clientOf, examples, show, withJson } from '../../cli/command.ts';
import { toLimits } from '../../keys/limit-fields.ts';
import { limitsText } from '../../keys/limit-texts.ts';
import type { CommandPart } from '../interfaces/commands.ts';
import { retryPlanWire } from './wires.ts';

/** `tollgate plans retry` ends the revert of a plan. */
export const guardCommands: CommandPart = {
  addToPlans(plans) {
    withJson(plans.command('retry'))
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
  },
};
