import { kindOf, type Notice, webhookTypeOf } from '../../../fleet/kinds/kinds.ts';
import type { Receiver } from '../settings/receivers.ts';

/**
 * Whether a receiver gets the event of a notice. An event matches each filter of the receiver, and an event without a key, plan or operation
 * matches no filter by it.
 *
 * @param planOfKey the plan of the notice's key at the time of the event, if the notice does not state it
 */
export function isWantedBy(
  { events, at, keys, plans, operations }: Omit<Receiver, 'id' | 'url' | 'secrets'>,
  notice: Notice,
  planOfKey?: string,
): boolean {
  const type = webhookTypeOf(notice);
  if (type === undefined || !events.includes(type)) return false;
  if (notice.kind === 'quota_threshold' && !at.includes(notice.percent)) return false;
  const { key, plan = planOfKey, operation } = kindOf(notice).about(notice);
  const matches = (filter: readonly string[] | undefined, id: string | undefined) =>
    filter === undefined || (id !== undefined && filter.includes(id));
  return matches(keys, key) && matches(plans, plan) && matches(operations, operation);
}
