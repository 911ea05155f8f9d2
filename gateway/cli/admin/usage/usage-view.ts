import type { UsageRow } from '../../../admin/wires/keys/usage.ts';
import { csv } from '../../../admin/words/csv.js';
import { emptyText } from '../../../admin/words/list.js';
import { refusedInWords } from '../../../admin/words/usage.js';
import { planWindows } from '../../../shared/model.ts';
import { printable } from '../../../shared/terminal/printable.ts';
import { wrapText } from '../../../shared/terminal/text-width.ts';
import { policyName } from '../../../shared/words/limit-names.js';
import type { Screen } from '../../output/screen.ts';
import { type Column, table } from '../../output/table.ts';
import type { Shift } from '../period.ts';
import type { ReadUsage } from '../read/read-usage.ts';
import {
  beforeIsUnknown,
  changeColumns,
  changeNotes,
  compareRows,
  knownShift,
  rowText,
} from './compare-rows.ts';

interface Shown {
  readonly shift: Shift | undefined;
  readonly screen: Screen;
  readonly nowMs: number;
  /** Whether the rows of minutes or hours may begin before the record of minutes does. */
  readonly mayLackRows: boolean;
}

/** The table of the usage of a key, what it is compared with, and the forecast of the key. */
export function usageLines(id: string, usage: ReadUsage, shown: Shown): string[] {
  const { forecast, before } = usage;
  const { screen, mayLackRows } = shown;
  const shift = knownShift(shown.shift, before);
  const isEmpty = usage.rows.length === 0 && (before?.rows.length ?? 0) === 0;
  const lines = isEmpty
    ? [emptyText(usage, `No request of ${printable(id)} is recorded in this period.`)]
    : usageTable(usage, { ...shown, shift });
  const lacking =
    shift !== undefined && mayLackRows
      ? [
          'Minutes are kept for usage.keepDays, so earlier rows may be missing. With --step day, they are complete.',
        ]
      : [];
  const compared =
    shift === undefined || before === undefined || isEmpty
      ? []
      : changeNotes(compareUsage(usage, shift), {
          before: before.rows,
          shift,
          step: usage.step,
          nowMs: shown.nowMs,
        });
  const notes = [
    ...(before?.missing === undefined ? [] : [beforeIsUnknown]),
    ...compared,
    ...lacking,
    ...(forecast ? [printable(forecast.sentence)] : []),
  ];
  return [...lines, ...notes.flatMap((note) => wrapText(note, screen.columns))];
}

function usageTable(usage: ReadUsage, { shift, screen, nowMs }: Shown): string[] {
  const { step } = usage;
  const compared = compareUsage(usage, shift);
  const { rows } = compared;
  const total = sumOf(rows);
  const columns: readonly Column<UsageRow>[] = [
    {
      title: `${step.toUpperCase()} (UTC)`,
      cell: (row) => (row === total ? 'total' : rowText(step, row.at)),
    },
    { title: 'OFFERED', cell: ({ offered }) => offered },
    ...(shift === undefined
      ? []
      : changeColumns(compared, { total, requestsOf: ({ offered }) => offered, step, nowMs })),
    { title: 'ADMITTED', cell: ({ admitted }) => admitted },
    ...unitsColumn(rows),
    ...groupsIn(rows).map((name) => ({
      title: `UNITS OF ${name}`,
      cell: ({ groups }: UsageRow) => groups?.[name]?.units ?? 0,
    })),
    {
      title: 'REFUSED',
      cell: ({ refused }) => Object.values(refused).reduce((sum, count) => sum + count, 0),
    },
    { title: 'BANNED', cell: ({ banned }) => banned },
    ...(['undecided', 'unauthorized'] as const)
      .filter((name) => (total[name] ?? 0) > 0)
      .map((name) => ({ title: name.toUpperCase(), cell: (row: UsageRow) => row[name] ?? 0 })),
    { title: 'REFUSED BY', cell: refusedInWords, cutsTo: 10 },
  ];
  return table(columns, [...rows, total], screen, (row) => (row === total ? 'title' : undefined));
}

function compareUsage({ rows, before }: ReadUsage, shift: Shift | undefined) {
  return compareRows(rows, before?.rows, noRequests, shift);
}

const noRequests: UsageRow = { at: '', offered: 0, admitted: 0, refused: {}, banned: 0 };

function groupsIn(rows: readonly UsageRow[]): readonly string[] {
  return [...new Set(rows.flatMap(({ groups }) => Object.keys(groups ?? {})))].sort();
}

/**
 * The columns are the same for every period. Four columns for each group of operations follow, then `refused_group` if groups that the key
 * no longer has refused requests, and the columns of the earlier period if there is one.
 */
export function usageCsv(usage: ReadUsage, shift?: Shift): readonly string[] {
  const known = knownShift(shift, usage.before);
  const { rows, beforeOf } = compareUsage(usage, known);
  const refusedColumns = planWindows.map((window) => `refused_${window}`);
  const groups = groupsIn(rows);
  const groupColumns = rows.some(({ refused }) => refused.group !== undefined) ? ['refused_group'] : [];
  const titles = [
    ...['at', 'offered', 'admitted', ...refusedColumns],
    ...['banned', 'undecided', 'unauthorized', 'units', 'refused_concurrent'],
    ...groups.flatMap((name) => groupFigures.map((figure) => `${figure}_${name}`)),
    ...groupColumns,
    ...(shift === undefined ? [] : ['offered_before', 'admitted_before', 'units_before']),
  ];
  return csv(
    titles,
    rows.map((row) => {
      const { at, offered, admitted, refused, banned, undecided = 0, unauthorized = 0 } = row;
      const byWindow = planWindows.map((window) => refused[window] ?? 0);
      const { concurrent = 0, group = 0 } = refused;
      const { offered: offeredBefore, ...earlier } = beforeOf(row);
      const before = known ? [offeredBefore, earlier.admitted, chargedUnits(earlier)] : ['', '', ''];
      return [
        ...[at, offered, admitted, ...byWindow, banned, undecided, unauthorized, chargedUnits(row)],
        concurrent,
        ...groups.flatMap((name) => {
          const ofGroup = row.groups?.[name];
          const refusedBy = planWindows.map((window) => refused[policyName(window, name)] ?? 0);
          const ofWindows = refusedBy.reduce((sum, requests) => sum + requests, 0);
          return [ofGroup?.offered ?? 0, ofGroup?.admitted ?? 0, ofGroup?.units ?? 0, ofWindows];
        }),
        ...groupColumns.map(() => group),
        ...(shift === undefined ? [] : before),
      ];
    }),
  );
}

/** The figures of a group. `refused` counts the requests that a window of the group refused. */
const groupFigures = ['offered', 'admitted', 'units', 'refused'] as const;

interface Used {
  readonly admitted: number;
  /** The units are absent if every request cost 1 unit. */
  readonly units?: number | undefined;
}

function chargedUnits({ admitted, units = admitted }: Used): number {
  return units;
}

/** Returns the UNITS column, or no column if every request cost 1 unit. */
function unitsColumn(rows: readonly Used[]): { title: string; cell: (row: Used) => number }[] {
  return rows.some(({ units }) => units !== undefined) ? [{ title: 'UNITS', cell: chargedUnits }] : [];
}

function sumOf(rows: readonly UsageRow[]): UsageRow {
  const refused: Record<string, number> = {};
  const sum = {
    at: '',
    offered: 0,
    admitted: 0,
    units: 0,
    refused,
    banned: 0,
    undecided: 0,
    unauthorized: 0,
    groups: Object.fromEntries(groupsIn(rows).map((name) => [name, { offered: 0, admitted: 0, units: 0 }])),
  };
  for (const row of rows) {
    sum.offered += row.offered;
    sum.admitted += row.admitted;
    sum.units += chargedUnits(row);
    sum.banned += row.banned;
    sum.undecided += row.undecided ?? 0;
    sum.unauthorized += row.unauthorized ?? 0;
    for (const [name, ofGroup] of Object.entries(row.groups ?? {})) {
      const ofSum = sum.groups[name];
      if (ofSum === undefined) continue;
      ofSum.offered += ofGroup.offered;
      ofSum.admitted += ofGroup.admitted;
      ofSum.units += ofGroup.units;
    }
    for (const [name, requests] of Object.entries(row.refused))
      refused[name] = (refused[name] ?? 0) + requests;
  }
  return sum;
}
