import { changeInWords } from '../../../admin/words/usage.js';
import { calendarStartMs } from '../../../shared/calendar-windows.ts';
import { isoSecondOf } from '../../../shared/schema/dates-and-durations.ts';
import type { UsageStep } from '../../../shared/schema/query-words.ts';
import { instant } from '../../output/figures.ts';
import type { Column } from '../../output/table.ts';
import type { Shift } from '../period.ts';

export const beforeIsUnknown = 'The earlier period is not known, because Redis is away.';

/**
 * Returns the shift of a comparison; undefined if nothing is compared. Zeros in place of what only Redis has would be wrong, so nothing is
 * compared while the earlier period is not known.
 */
export function knownShift(
  shift: Shift | undefined,
  before: { readonly missing?: unknown } | undefined,
): Shift | undefined {
  return before?.missing === undefined ? shift : undefined;
}

interface Row {
  /** The beginning of the row, ISO 8601. */
  readonly at: string;
}

/** The rows of a period, and the row of the earlier period for each of them. */
export interface ComparedRows<Of extends Row> {
  readonly rows: readonly Of[];
  readonly beforeOf: (row: Of) => Of;
}

/**
 * Joins the rows of a period with the rows of the earlier period. A row that is in only one of them has zeros in the other.
 *
 * @param none a row without requests
 * @param shift undefined: nothing is compared, so there are no earlier rows
 */
export function compareRows<Of extends Row>(
  rows: readonly Of[],
  before: readonly Of[] | undefined,
  none: Of,
  shift: Shift | undefined,
): ComparedRows<Of> {
  const earlier = new Map(
    shift === undefined ? [] : before?.map((row) => [shift.later(Date.parse(row.at)), row] as const),
  );
  const known = new Set(rows.map(({ at }) => Date.parse(at)));
  const onlyEarlier = [...earlier.keys()]
    .filter((atMs) => !known.has(atMs))
    .map((atMs) => ({ ...none, at: isoSecondOf(atMs) }));
  return {
    rows: [...rows, ...onlyEarlier].sort((a, b) => Date.parse(a.at) - Date.parse(b.at)),
    beforeOf: ({ at }) => earlier.get(Date.parse(at)) ?? none,
  };
}

/**
 * Columns with the requests of the earlier period, and the change. The present row is not over, so it has no change. The total compares the
 * other rows.
 */
export function changeColumns<Of extends Row>(
  { rows, beforeOf }: ComparedRows<Of>,
  {
    total,
    requestsOf,
    step,
    nowMs,
  }: {
    readonly total: Of;
    readonly requestsOf: (row: Of) => number;
    readonly step: UsageStep;
    readonly nowMs: number;
  },
): readonly Column<Of>[] {
  const isOver = isOverAt(step, nowMs);
  const over = rows.filter(isOver);
  const sum = (some: readonly Of[]) => some.reduce((all, row) => all + requestsOf(row), 0);
  return [
    {
      title: 'BEFORE',
      cell: (row) => (row === total ? sum(rows.map(beforeOf)) : requestsOf(beforeOf(row))),
    },
    {
      title: 'CHANGE',
      align: 'right',
      cell: (row) => {
        if (row === total && over.length === 0) return 'not over';
        if (row === total) return changeInWords(sum(over), sum(over.map(beforeOf)));
        return isOver(row) ? changeInWords(requestsOf(row), requestsOf(beforeOf(row))) : 'not over';
      },
    },
  ];
}

/** What the change of the total compares. @param before the rows of the earlier period */
export function changeNotes(
  { rows }: Pick<ComparedRows<Row>, 'rows'>,
  {
    before,
    shift,
    step,
    nowMs,
  }: {
    readonly before: readonly Row[];
    readonly shift: Shift;
    readonly step: UsageStep;
    readonly nowMs: number;
  },
): readonly string[] {
  if (before.length === 0) return ['No request is recorded in the earlier period.'];
  const over = rows.filter(isOverAt(step, nowMs));
  const [first, last] = [over.at(0), over.at(-1)];
  if (first === undefined || last === undefined) return ['No row is over, so the total has no change.'];
  const present = { from: first.at, to: last.at };
  const { from, to } = shift.periodBefore(present, nowMs);
  const isAll = over.length === rows.length;
  const leftOut = isAll ? '' : ', without the row that is not over';
  return [
    `The change of the total compares ${periodText(step, present)} with ${periodText(step, { from, to })}${leftOut}.`,
  ];
}

function isOverAt(step: UsageStep, nowMs: number): (row: Row) => boolean {
  const presentMs = calendarStartMs(step, nowMs);
  return ({ at }) => Date.parse(at) < presentMs;
}

/** The first and the last row of a period. */
function periodText(step: UsageStep, { from, to }: { readonly from: string; readonly to: string }): string {
  const [first, last] = [rowText(step, from), rowText(step, to)];
  return first === last ? first : `${first} to ${last}`;
}

/** The beginning of a row, as short as the length of the row allows, such as 2026-11 for a month. */
export function rowText(step: UsageStep, at: string): string {
  return instant(at).slice(0, { month: 7, day: 10, hour: 16, minute: 16 }[step]);
}
