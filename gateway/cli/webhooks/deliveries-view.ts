import type {
  DeliveredEvent,
  DeliveriesShown,
  DeliveryShown,
  ReceiverProblem,
} from '../../admin/wires/deliveries.ts';
import { counted, figure } from '../../fleet/wording.ts';
import { webhookEventTypes } from '../../shared/model.ts';
import { oneLine, wrapText } from '../../shared/terminal/text-width.ts';
import { ago, clock, duration, instant } from '../output/figures.ts';
import type { Screen, Tone } from '../output/screen.ts';
import { type Column, table } from '../output/table.ts';
import type { Tested } from './test-receiver.ts';

/**
 * Makes the lines about deliveries. The first lines state how many deliveries wait or failed, and why. An operator therefore sees the problem
 * before the list.
 *
 * @param isFiltered whether the list may lack events
 */
export function deliveriesLines(
  page: DeliveriesShown,
  screen: Screen,
  nowMs: number,
  { isFiltered }: { readonly isFiltered: boolean },
): readonly string[] {
  const { counts, receivers, events } = page;
  if (receivers.length === 0 && counts.events === 0) return unconfigured;
  const head = summaryLines(page, screen, nowMs);
  if (events.length === 0) {
    if (isFiltered) return [...head, 'No delivery matches these filters.'];
    return [...head, 'No event was recorded yet.'];
  }
  const rows = events.flatMap((event) => event.deliveries.map((delivery) => ({ event, delivery })));
  return [...head, ...table(listColumns(nowMs), rows, screen)];
}

const unconfigured = [
  'No receiver is configured, so no event is sent. Add a receiver to the configuration, for example:',
  '',
  'notify:',
  '  - url: https://hooks.example.com/tollgate',
  '    secretFile: /run/secrets/hook',
  '    events: [quota.threshold, key.banned, target.down]',
  '',
  '"tollgate notify test URL" sends an example of each event to the receiver.',
];

function summaryLines(
  { counts, problems }: DeliveriesShown,
  screen: Screen,
  nowMs: number,
): readonly string[] {
  const { waiting, failed, delivered, dropped, unsent } = counts;
  const sentences: [string, Tone | undefined][] = [
    [
      `${figure(failed)} failed, ${figure(waiting)} waiting, ${figure(delivered)} delivered.`,
      failed > 0 ? 'bad' : problems.length > 0 ? 'warning' : 'good',
    ],
    ...problems.map((problem): [string, Tone] => [
      problemText(problem, nowMs),
      problem.failed > 0 ? 'bad' : 'warning',
    ]),
  ];
  if (dropped > 0) {
    const text = `${counted(dropped, 'event was', 'events were')} removed before each receiver got them, because the queue was full.`;
    sentences.push([text, 'bad']);
  }
  if (unsent > 0) {
    const text = `${counted(unsent, 'event waits', 'events wait')} in the process until Redis accepts them.`;
    sentences.push([text, 'warning']);
  }
  return sentences.flatMap(([text, tone]) =>
    wrapText(text, screen.columns).map((line) => (tone === undefined ? line : screen.paint(tone, line))),
  );
}

function problemText(
  { receiver, url = receiver, waiting, failed, last, nextAt }: ReceiverProblem,
  nowMs: number,
) {
  const numbers = [failed > 0 && `${figure(failed)} failed`, waiting > 0 && `${figure(waiting)} waiting`];
  const next = nextAt === undefined ? '' : ` The next attempt is ${nextText(nextAt, nowMs)}.`;
  const when = clock(Date.parse(last.at), nowMs);
  return `${url}: ${numbers.filter(Boolean).join(', ')}. It last failed at ${when} UTC (${resultText(last)}).${next}`;
}

interface Row {
  readonly event: DeliveriesShown['events'][number];
  readonly delivery: DeliveryShown;
}

function listColumns(nowMs: number): readonly Column<Row>[] {
  // A narrow terminal shows the first columns.
  return [
    { title: 'ID', cell: ({ event }) => event.id },
    { title: 'EVENT', cell: ({ event }) => event.type },
    { title: 'SUBJECT', cell: ({ event }) => event.subject, cutsTo: 10 },
    { title: 'STATE', cell: ({ delivery }) => stateCell(delivery) },
    { title: 'LAST ANSWER', cell: ({ delivery }) => resultText(delivery.last), cutsTo: 10 },
    { title: 'WHEN', cell: ({ event }) => ago(Date.parse(event.at), nowMs) },
    { title: 'RECEIVER', cell: ({ delivery }) => delivery.url ?? delivery.receiver, cutsTo: 16 },
    { title: 'NEXT', cell: ({ delivery }) => nextText(delivery.nextAt, nowMs), isOptional: true },
    { title: 'ATTEMPTS', cell: ({ delivery }) => delivery.attempts, isOptional: true },
  ];
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
  const columns: readonly Column<DeliveryShown>[] = [
    { title: 'RECEIVER', cell: ({ url, receiver }) => url ?? receiver, cutsTo: 12 },
    { title: 'ID', cell: ({ receiver }) => receiver, isOptional: true },
    { title: 'STATE', cell: stateCell },
    { title: 'ATTEMPTS', cell: ({ attempts }) => attempts },
    { title: 'LAST ANSWER', cell: ({ last }) => resultText(last), cutsTo: 10 },
    { title: 'AT (UTC)', cell: ({ last }) => last && clock(Date.parse(last.at), nowMs) },
    { title: 'NEXT', cell: ({ nextAt }) => nextText(nextAt, nowMs), isOptional: true },
  ];
  return [
    ...title.map((line) => screen.paint('title', line)),
    ...(text === undefined ? [] : wrapText(text, screen.columns)),
    '',
    ...table(columns, deliveries, screen),
    '',
    json,
  ];
}

function stateCell({ state, last }: DeliveryShown): {
  readonly text: string;
  readonly tone: Tone | undefined;
} {
  if (state === 'failed') return { text: state, tone: 'bad' };
  return { text: state, tone: state === 'waiting' && last?.error !== undefined ? 'warning' : undefined };
}

/** Makes the line about one example event: its type, the answer of the receiver, and the duration. */
export function testedLine({ type, status, error, ms }: Tested, { paint }: Screen): string {
  const tone = error === undefined ? 'good' : 'bad';
  const answer = error ?? `status ${status}`;
  return `${type.padEnd(typeColumns)}  ${`${figure(ms)} ms`.padStart(9)}  ${paint(tone, oneLine(answer))}`;
}

const typeColumns = Math.max(...webhookEventTypes.map((type) => type.length));

/** The answer of a receiver, such as `204` or `500`, or the reason why there was no answer. */
function resultText(last: DeliveryShown['last']): string {
  if (last === undefined) return '';
  const { status, error } = last;
  return error ?? (status === undefined ? '' : `status ${status}`);
}

function nextText(nextAt: string | undefined, nowMs: number): string {
  if (nextAt === undefined) return '';
  const inMs = Date.parse(nextAt) - nowMs;
  return inMs < 1_000 ? 'now' : `in ${duration(inMs)}`;
}
