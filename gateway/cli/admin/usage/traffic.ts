import { getTrafficWire } from '../../../admin/wires/operations.ts';
import { csv } from '../../../admin/words/csv.js';
import { emptyText } from '../../../admin/words/list.js';
import { calendarStartMs } from '../../../shared/calendar-windows.ts';
import type { AnswerOf } from '../../../shared/http/wire.ts';
import type { UsageStep } from '../../../shared/schema/query-words.ts';
import { wrapText } from '../../../shared/terminal/text-width.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import { type TrafficEnding, trafficEndings } from '../../../usage/traffic.ts';
import type { Asking, PeriodOptions } from '../../command.ts';
import { CommandError } from '../../output/command-error.ts';
import type { Screen } from '../../output/screen.ts';
import { show } from '../../output/show.ts';
import { type Column, table } from '../../output/table.ts';
import { periodQuery, type Shift, shiftOf, stepFor } from '../period.ts';
import { clientAfterFlush } from '../read/flush-counts.ts';
import {
  beforeIsUnknown,
  changeColumns,
  changeNotes,
  compareRows,
  knownShift,
  rowText,
} from './compare-rows.ts';

interface TrafficOptions extends Asking, PeriodOptions {
  readonly step?: UsageStep | undefined;
  readonly compare?: string | undefined;
  readonly csv?: true | undefined;
}

type Traffic = AnswerOf<typeof getTrafficWire>;
type TrafficRow = Traffic['rows'][number];

interface ComparedTraffic extends Traffic {
  readonly before?: Traffic;
}

/** Shows the requests of all clients. */
export async function showTraffic({
  from,
  to,
  step: askedStep,
  compare,
  csv: asCsv,
  ...options
}: TrafficOptions): Promise<void> {
  if (askedStep === 'month') {
    throw new CommandError(
      'The requests of all clients are not on record by month. Give --step minute, hour or day, or the id of a key.',
    );
  }
  const nowMs = Date.now();
  const shift = compare === undefined ? undefined : shiftOf(compare);
  const period = periodQuery({ from, to }, nowMs, shift);
  const periodBefore = shift?.periodBefore(period, nowMs);
  const step = askedStep ?? (periodBefore === undefined ? 'hour' : stepFor(periodBefore, nowMs));
  shift?.checkStep(step);
  const client = await clientAfterFlush(options);
  const trafficIn = (asked: typeof period) => client.ask(getTrafficWire, { query: { ...asked, step } });
  const [present, before] = await Promise.all([trafficIn(period), periodBefore && trafficIn(periodBefore)]);
  const body = { ...present.body, ...(before && { before: before.body }) };
  const json = { ...Object(present.json), ...(before && { before: before.json }) };
  const notes = before && periodBefore ? keptNotes(before.body, periodBefore.from, client.bounds) : [];
  show(options, { body, json }, (traffic: ComparedTraffic, screen) =>
    asCsv
      ? trafficCsv(traffic, shift)
      : trafficLines(traffic, { shift: knownShift(shift, before?.body), screen, nowMs, notes }),
  );
}

/** What the record of the earlier period may lack. @param from its asked beginning */
function keptNotes(before: Traffic, from: string, { usageOfAllDaysMin }: Bounds): readonly string[] {
  if (before.missing !== undefined) return [beforeIsUnknown];
  if (!beginsLate(before, from)) return [];
  return [
    `Earlier rows may be missing: Redis keeps the requests of all clients for ${usageOfAllDaysMin} days, or for usage.keepDays if it is longer. A gateway without Redis keeps one day.`,
  ];
}

/** Whether the rows begin later than the asked period. */
function beginsLate({ rows, step }: Traffic, from: string): boolean {
  const [first] = rows;
  return first === undefined || Date.parse(first.at) > calendarStartMs(step, Date.parse(from));
}

const noRequests: TrafficRow = {
  ...{ at: '', requests: 0, served: 0, refused: 0, banned: 0, rejected: 0 },
  ...{ failedByGateway: 0, failedByUpstream: 0, ownTime: {}, upstreamTime: {} },
};

function trafficLines(
  traffic: ComparedTraffic,
  {
    shift,
    screen,
    nowMs,
    notes,
  }: {
    readonly shift: Shift | undefined;
    readonly screen: Screen;
    readonly nowMs: number;
    readonly notes: readonly string[];
  },
): readonly string[] {
  const { step, before } = traffic;
  const compared = compareRows(traffic.rows, before?.rows, noRequests, shift);
  const { rows } = compared;
  if (rows.length === 0) return [emptyText(traffic, 'No request is recorded in this period.')];
  const changed =
    shift === undefined || before === undefined
      ? []
      : changeNotes(compared, { before: before.rows, shift, step, nowMs });
  const total = sumOf(rows);
  const requestsOf = ({ requests }: TrafficRow) => requests;
  const columns: readonly Column<TrafficRow>[] = [
    {
      title: `${step.toUpperCase()} (UTC)`,
      cell: (row) => (row === total ? 'total' : rowText(step, row.at)),
    },
    { title: 'REQUESTS', cell: requestsOf },
    ...(shift === undefined ? [] : changeColumns(compared, { total, requestsOf, step, nowMs })),
    { title: 'SERVED', cell: ({ served }) => served },
    { title: 'REFUSED', cell: ({ refused, banned }) => refused + banned },
    { title: 'NO KEY', cell: ({ rejected }) => rejected },
    { title: 'FAILED', cell: ({ failedByGateway, failedByUpstream }) => failedByGateway + failedByUpstream },
  ];
  return [
    ...table(columns, [...rows, total], screen, (row) => (row === total ? 'title' : undefined)),
    ...[...changed, ...notes].flatMap((note) => wrapText(note, screen.columns)),
  ];
}

function trafficCsv(traffic: ComparedTraffic, shift: Shift | undefined): readonly string[] {
  const known = knownShift(shift, traffic.before);
  const { rows, beforeOf } = compareRows(traffic.rows, traffic.before?.rows, noRequests, known);
  return csv(
    ['at', 'requests', ...trafficEndings.map(snakeCase), ...(shift === undefined ? [] : ['requests_before'])],
    rows.map((row) => [
      ...[row.at, row.requests, ...trafficEndings.map((ending) => row[ending])],
      ...(shift === undefined ? [] : [known ? beforeOf(row).requests : '']),
    ]),
  );
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function sumOf(rows: readonly TrafficRow[]): TrafficRow {
  const sum = (name: 'requests' | TrafficEnding) => rows.reduce((all, row) => all + row[name], 0);
  const ended = Object.fromEntries(trafficEndings.map((ending) => [ending, sum(ending)]));
  return { ...noRequests, requests: sum('requests'), ...ended };
}
