import { clientOf } from '../../../cli/admin/find-gateway.ts';
import { periodQuery } from '../../../cli/admin/period.ts';
import { readList } from '../../../cli/admin/read/read-list.ts';
import type { Asking, PeriodOptions } from '../../../cli/command.ts';
import { CommandError } from '../../../cli/output/command-error.ts';
import { print, printJson } from '../../../cli/output/screen.ts';
import { screenNow, show } from '../../../cli/output/show.ts';
import { showList } from '../../../cli/output/show-list.ts';
import { printable, printableJsonText } from '../../../shared/terminal/printable.ts';
import { counted } from '../../../shared/words/figures.js';
import { getDeliveryWire, listDeliveriesWire, sendAgainWire } from '../api/wires.ts';
import { deliveryList } from '../page/words/deliveries.js';
import { eventLines, noReceiverLines } from './deliveries-view.ts';

export interface ListOptions extends Asking, PeriodOptions {
  readonly failed?: true;
  readonly waiting?: true;
  readonly type?: string;
  readonly key?: string;
  readonly receiver?: string;
  readonly limit: number;
  readonly csv?: true;
}

export interface SendOptions extends Asking {
  readonly receiver?: string;
}

export async function listDeliveries({
  failed,
  waiting,
  type,
  key,
  receiver,
  from,
  to,
  limit,
  ...options
}: ListOptions): Promise<void> {
  const states = [failed && 'failed', waiting && 'waiting'].filter(Boolean).join(',');
  const subject = key === undefined ? undefined : `key ${key}`;
  const period = periodQuery({ from, to }, Date.now());
  const query = { ...period, state: states || undefined, type, subject, receiver };
  const client = await clientOf(options);
  const page = { wire: listDeliveriesWire(client.bounds), member: 'events', perPage: 200 };
  const reply = await readList(client, page, query, limit);
  const { receivers, counts } = reply.body;
  const hasNoReceiver = receivers.length === 0 && counts.events === 0 && !options.csv;
  if (hasNoReceiver) show(options, reply, noReceiverLines);
  else showList(options, reply, deliveryList, { asked: { filter: query } });
}

/** Prints an event with its body and the attempts of each receiver. */
export async function showDelivery(id: string, options: Asking): Promise<void> {
  const client = await clientOf(options);
  const { body, json } = await ofEvent(id, () => client.ask(getDeliveryWire, { params: { id } }));
  if (options.json) return printJson(json);
  print(eventLines(body, readBody(Object(json).body), screenNow(), Date.now()));
}

export async function sendAgain(id: string, { receiver, ...options }: SendOptions): Promise<void> {
  const client = await clientOf(options);
  const { body, json } = await ofEvent(
    id,
    () => client.ask(sendAgainWire, { params: { id }, body: { receiver } }),
    receiver,
  );
  if (options.json) return printJson(json);
  print([
    `The event is due now for ${counted(body.due, 'receiver')}. "tollgate deliveries show ${id}" shows the result.`,
  ]);
}

/**
 * Reads or sends one event.
 *
 * @throws a CommandError, also if the queue does not have the event, or if the event has no delivery to the receiver
 */
async function ofEvent<Result>(id: string, ask: () => Promise<Result>, receiver?: string): Promise<Result> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof CommandError && error.kind === 'not_found')) throw error;
    const whose = receiver === undefined ? '' : ` with a delivery to the receiver ${receiver}`;
    const text = `There is no event ${id}${whose}. "tollgate deliveries" lists the events, and a full queue removes its oldest events.`;
    throw new CommandError(printable(text), 'not_found');
  }
}

/**
 * Reads the body that the receivers get. The JSON text is parsed before control characters are escaped, because the escaped text is no JSON.
 */
function readBody(body: unknown): { readonly text: string | undefined; readonly json: string } {
  try {
    const parsed = JSON.parse(String(body));
    const text = parsed?.data?.text;
    return {
      text: typeof text === 'string' ? printableJsonText(text).slice(1, -1) : undefined,
      json: printableJsonText(parsed),
    };
  } catch {
    return { text: undefined, json: printableJsonText(body) };
  }
}
