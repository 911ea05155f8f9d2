import { clientOf } from '../../../cli/admin/find-gateway.ts';
import { ofPlan } from '../../../cli/admin/read/read-plan.ts';
import type { Asking } from '../../../cli/command.ts';
import { show } from '../../../cli/output/show.ts';
import { toLimits } from '../../../keys/limits/limit-fields.ts';
import { limitsText } from '../../../keys/limits/limit-texts.ts';
import { retryPlanWire } from '../operators/wires.ts';

/** Lets a reverted plan try its edit again. */
export async function retryPlan(name: string, options: Asking): Promise<void> {
  const client = await clientOf(options);
  const reply = await ofPlan(client, name, () => client.ask(retryPlanWire, { params: { name } }));
  show(options, reply, ({ plan, limits }) => [
    `The plan ${plan} tries its edit again: ${limitsText(toLimits(limits))}.`,
  ]);
}
