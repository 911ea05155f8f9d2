import { listPlansWire } from '../../../admin/wires/plans/plans.ts';
import { didYouMean, listNames } from '../../../shared/schema/closest-name.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import { CommandError } from '../../output/command-error.ts';
import type { AdminClient } from '../admin-client.ts';

type Client = Pick<AdminClient, 'ask'>;

/** @throws a CommandError, which suggests a similar name if the plan does not exist */
export async function ofPlan<Result>(
  client: Client,
  name: string,
  ask: () => Promise<Result>,
): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof CommandError && error.kind === 'not_found') await requirePlan(client, name);
    throw error;
  }
}

/** @throws a CommandError if there is no such plan; it suggests a similar name */
export async function requirePlan(client: Client, name: string): Promise<void> {
  const { body } = await client.ask(listPlansWire);
  requireName(
    'plan',
    name,
    body.plans.map((plan) => plan.name),
  );
}

/** @throws a CommandError if the name is not in the list; it suggests a similar name, or lists all */
export function requireName(noun: string, name: string, names: readonly string[]): void {
  if (names.includes(name)) return;
  const advice = didYouMean(name, names) || `; ${noun}s are: ${listNames(names)}.`;
  throw new CommandError(printable(`There is no ${noun} ${name}${advice}`));
}
