import { type Command, Option } from 'commander';
import type * as z from 'zod';
import {
  grantKeyWire,
  unbanKeyWire,
  ungrantKeyWire,
  type whatHolds,
} from '../../admin/wires/keys/bans-and-grants.ts';
import { type LimitsByField, limitFieldNames } from '../../keys/limit-fields.ts';
import { exemptionMembers, exemptions } from '../../shared/schema/exemptions.ts';
import { grantText } from '../admin/keys-view.ts';
import { grantPeriod } from '../admin/period.ts';
import { changeKey, readKey } from '../admin/read-api.ts';
import { type Asking, clientOf, examples, withGateway } from '../command.ts';
import { CommandError } from '../output/command-error.ts';
import { clock } from '../output/figures.ts';
import { print, printJson } from '../output/screen.ts';
import { addLimitOptions, limitOption, limitsOf } from './limit-options.ts';

/**
 * Adds the commands on bans and grants. These commands send requests to a gateway even for keys of the keys file, because bans
 * and grants are not part of the configuration.
 */
export function addBanAndGrantCommands(keys: Command): void {
  const asking = (name: string) =>
    withGateway(keys.command(name))
      .helpGroup('Bans and grants:')
      .argument('<key>', 'the id of the key')
      .option('--json', 'print the ban and grant of the key after the change, in the form of the admin API');

  asking('unban')
    .description('end the ban of a key on every process, within a second')
    .addHelpText('after', examples('keys unban acme'))
    .action((id: string, options: Asking) => change(id, options, { wire: unbanKeyWire }, banText));

  const grant = asking('grant')
    .description('give a key other limits for a while, in place of the limits of its plan')
    .addHelpText(
      'after',
      examples(
        'keys grant acme --per-day 5000 --until tomorrow',
        'keys grant acme --group reports --per-day 50 --from 2026-11-27 --until 2026-11-29',
        ...exemptions.slice(0, 1).map(({ option }) => `keys grant acme ${option} --until 2026-11-29`),
      ),
    )
    .requiredOption(
      '--until <when>',
      'when the grant ends, in UTC: tomorrow or 2026-12-01 (the end of that day), 18:00, +6h, 2026-12-01T18:00Z',
    )
    .option('--from <when>', 'when the grant begins, in the same form; a day means 00:00 UTC (default: now)')
    .option('--group <name>', 'the group of operations whose limits the grant changes')
    .action(async (id: string, options: GrantOptions) => {
      const stated = limitsOf(options);
      const { group } = options;
      const limits = group === undefined ? stated : stated && { groups: { [group]: stated } };
      const granted = exemptionOptions.filter(
        ({ option }) => grant.getOptionValueSource(option.attributeName()) === 'cli',
      );
      const all = limitFieldNames.map(limitOption).join(', ');
      if (group !== undefined && limits === undefined) {
        throw new CommandError(`Which limits of the group ${group}? Give at least one of ${all}.`);
      }
      if (limits === undefined && granted.length === 0) {
        const orExempt = exemptions.map(({ option }) => `, or ${option}`).join('');
        throw new CommandError(`Which limits? Give at least one of ${all}${orExempt}.`);
      }
      const exempt = exemptionMembers({ exemptions: granted.map(({ name }) => name) });
      const body = { limits, ...exempt, ...grantPeriod(options, Date.now()) };
      await change(id, options, { wire: grantKeyWire, body }, grantHeldText);
    });
  const exemptionOptions = exemptions.map(({ name, option, aboutOption }) => {
    return { name, option: new Option(option, aboutOption) };
  });
  for (const { option } of exemptionOptions) grant.addOption(option);
  addLimitOptions(grant, (window) => `requests per ${window}; the plan must limit this window`);

  asking('ungrant')
    .description('end the grant of a key, so that the limits of its plan apply again')
    .addHelpText('after', examples('keys ungrant acme'))
    .action((id: string, options: Asking) => change(id, options, { wire: ungrantKeyWire }, grantHeldText));
}

interface GrantOptions extends Asking, LimitsByField {
  readonly group?: string;
  readonly from?: string;
  readonly until: string;
}

interface Change {
  readonly wire: typeof unbanKeyWire | typeof grantKeyWire | typeof ungrantKeyWire;
  readonly body?: object;
}

type NowHeld = z.output<typeof whatHolds>;

/** Sends a change of a key, and prints its effect. */
async function change(
  id: string,
  options: Asking,
  { wire, body: sent }: Change,
  textOf: (held: NowHeld, nowMs: number) => string,
): Promise<void> {
  const client = clientOf(options);
  const { json, body } = await changeKey(id, () => client.ask(wire, { params: { id }, body: sent }));
  if (options.json) return printJson(json);
  print([textOf(body, Date.now())]);
  try {
    // The command explains the present responses of the key, because a limit may still refuse its requests. For example, a key may have no
    // requests left for the day when its ban ends.
    print([(await readKey(client, id)).body.why.sentence]);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    print([`The present responses of the key cannot be explained: ${error.message}`]);
  }
}

function banText({ id, ban, wasBanned }: NowHeld, nowMs: number): string {
  if (ban) return `${id} is banned again, until ${clock(ban.untilMs, nowMs)} UTC.`;
  return wasBanned === false ? `${id} was not banned.` : `${id} is no longer banned.`;
}

function grantHeldText({ id, grant }: NowHeld, nowMs: number): string {
  if (grant === undefined) return `${id} has no grant.`;
  return `${id} ${grant.fromMs === undefined ? 'has' : 'will have'} a grant: ${grantText(grant, nowMs)}.`;
}
