import type { StatedKey } from '../../keys/key-schema.ts';
import type { LimitsByField } from '../../keys/limits/limit-fields.ts';
import { isoSecondOf, parseDate } from '../../shared/schema/dates-and-durations.ts';
import { CommandError } from '../output/command-error.ts';
import type { KeyEdit } from './file/writable-keys.ts';
import { limitsOf } from './limit-options.ts';

export interface EditOptions extends LimitsByField {
  readonly plan?: string;
  readonly name?: string;
  readonly address?: readonly string[];
  readonly expires?: string;
  readonly from?: string;
  readonly withdraw?: true | string;
  readonly ifMatch?: string;
}

/** For the options `--name`, `--address` and `--expires`. */
const none = 'none';

/** @throws a CommandError if the options name no edit, or if two of them contradict each other */
export function editOf(options: EditOptions): KeyEdit {
  const { plan, name, address, expires, from, withdraw, ifMatch } = options;
  const limits = limitsOf(options);
  const members = {
    name: name === none ? null : name,
    addresses: address?.length === 1 && address[0] === none ? null : address,
    expiresAt: expires === none ? null : expires,
    withdraw,
    ifMatch,
  };
  if (from !== undefined) {
    if (plan === undefined)
      throw new CommandError('--from needs --plan: a change with a date is a change of the plan.');
    return { ...members, later: { from: laterDate(from), plan, ...(limits && { limits }) } };
  }
  const isEdit = [plan, limits, name, address, expires, withdraw].some((one) => one !== undefined);
  if (!isEdit)
    throw new CommandError(
      'Which change? Give --plan, limits such as --per-minute, --name, --address, --expires or --withdraw.',
    );
  // A key that moves to another plan keeps no limits of its own.
  return { ...members, plan, limits: limits ?? (plan === undefined ? undefined : null) };
}

/** @param written the option `--from` */
function laterDate(written: string): string {
  const atMs = parseDate(written);
  if (atMs === undefined)
    throw new CommandError(`--from must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z.`);
  if (atMs <= Date.now())
    throw new CommandError(`--from ${written} is in the past; leave it out for a change now.`);
  return written;
}

/** The members of a PATCH body, without the changes with a date. */
export function memberEdits({ plan, limits, name, addresses, expiresAt }: KeyEdit) {
  return { plan, limits, name, addresses, expiresAt };
}

/**
 * The later changes of a key's plan after an edit of them; null for none.
 *
 * @param present the changes of the key; past ones are left out
 * @throws a CommandError if there is no change at the time of `--withdraw`
 */
export function changesAfterEdit(
  present: StatedKey['changes'],
  { later, withdraw }: KeyEdit,
  nowMs: number,
): StatedKey['changes'] | null {
  const instant = ({ from }: { readonly from: string }) => parseDate(from) ?? 0;
  const before = present?.filter((change) => instant(change) > nowMs) ?? [];
  const withdrawnMs = typeof withdraw === 'string' ? parseDate(withdraw) : undefined;
  const kept = withdraw === true ? [] : before.filter((change) => instant(change) !== withdrawnMs);
  if (withdraw !== undefined && kept.length === before.length) {
    const known = before.map((change) => isoSecondOf(instant(change))).join(', ');
    const which = known === '' ? 'it has none' : `it has one at ${known}`;
    throw new CommandError(`There is no later change of this key to withdraw: ${which}.`);
  }
  const others = kept.filter((change) => later === undefined || instant(change) !== instant(later));
  const after = [...others, ...(later ? [later] : [])].sort((a, b) => instant(a) - instant(b));
  return after.length === 0 ? null : after;
}
