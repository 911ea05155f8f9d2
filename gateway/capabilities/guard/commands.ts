import { type Asking, examples, withReply } from '../../cli/command.ts';
import type { CommandPart } from '../interfaces/commands.ts';

/** `tollgate plans retry` ends the revert of a plan. */
export const guardCommands: CommandPart = {
  addToPlans(plans) {
    withReply(plans.command('retry'))
      .argument('<plan>', 'the name of the plan')
      .description('let a plan that its guard has reverted try its edit again')
      .addHelpText('after', examples('plans retry free'))
      .action(async (name: string, options: Asking) => {
        const { retryPlan } = await import('./commands/retry.ts');
        await retryPlan(name, options);
      });
  },
};
