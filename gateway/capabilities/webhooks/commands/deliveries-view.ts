import { instant } from '../../../cli/output/figures.ts';
import { listTable } from '../../../cli/output/list.ts';
import type { Screen } from '../../../cli/output/screen.ts';
import { wrapText } from '../../../shared/terminal/text-width.ts';
import type { DeliveredEvent } from '../api/wires.ts';
import { deliveriesOfEvent, noReceiver } from '../page/words/deliveries.js';

/** Makes the lines for a gateway without a receiver. */
export function noReceiverLines(): readonly string[] {
  const { before, example, command, after } = noReceiver;
  return [before, '', ...example.split('\n'), '', `"${command}" ${after}`];
}

/** Makes the lines about one event: its sentence, its deliveries, and its body. @param body the parsed body, as the receivers get it */
export function eventLines(
  { id, type, at, subject, deliveries }: DeliveredEvent,
  { text, json }: { readonly text: string | undefined; readonly json: string },
  screen: Screen,
  nowMs: number,
): readonly string[] {
  const about = subject === undefined ? '' : ` about ${subject}`;
  const title = wrapText(`${id}: ${type}${about}, ${instant(at)} UTC`, screen.columns);
  return [
    ...title.map((line) => screen.paint('title', line)),
    ...(text === undefined ? [] : wrapText(text, screen.columns)),
    '',
    ...listTable(deliveriesOfEvent, deliveries, screen, nowMs),
    '',
    json,
  ];
}
