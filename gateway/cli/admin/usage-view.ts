import { oneLine } from '../../shared/terminal/text-width.ts';
import { ago, figure, instant } from '../output/figures.ts';
import type { Screen } from '../output/screen.ts';
import { type Column, table } from '../output/table.ts';
import type { Callers, MonthUsage, Usage, UsageRow } from './api-shapes.ts';

/** The windows that may refuse, the shortest first. */
const windows = ['second', 'minute', 'hour', 'day', 'month'] as const;

/** A key's record, with its sum as the last line. */
export function usageTable({ step, rows }: Usage, screen: Screen): string[] {
  const isUndecided = rows.some(({ undecided = 0 }) => undecided > 0);
  const isUnauthorized = rows.some(({ unauthorized = 0 }) => unauthorized > 0);
  const columns: Column[] = [
    { title: `${step.toUpperCase()} (UTC)` },
    { title: 'OFFERED', align: 'right' },
    { title: 'ADMITTED', align: 'right' },
    { title: 'REFUSED', align: 'right' },
    { title: 'BANNED', align: 'right' },
    ...(isUndecided ? [{ title: 'UNDECIDED', align: 'right' } as const] : []),
    ...(isUnauthorized ? [{ title: 'UNAUTHORIZED', align: 'right' } as const] : []),
    { title: 'REFUSED BY', cutsTo: 10 },
  ];
  const digits = step === 'day' ? 10 : 16;
  const line = (name: string, row: UsageRow) => [
    name,
    figure(row.offered),
    figure(row.admitted),
    figure(refusedBy(row)),
    figure(row.banned),
    ...(isUndecided ? [figure(row.undecided ?? 0)] : []),
    ...(isUnauthorized ? [figure(row.unauthorized ?? 0)] : []),
    refusedInWords(row),
  ];
  const total = line('total', sumOf(rows)).map((text) => ({ text, tone: 'title' as const }));
  return table(columns, [...rows.map((row) => line(instant(row.at).slice(0, digits), row)), total], screen);
}

/** `minute 10, day 2`, and the bans; what refused most comes first. */
export function refusedInWords({ refused, banned, undecided = 0 }: UsageRow): string {
  const all = [...Object.entries(refused), ['ban', banned] as const, ['no decision', undecided] as const];
  return all
    .filter(([, requests]) => requests > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([name, requests]) => `${name} ${figure(requests)}`)
    .join(', ');
}

/**
 * Comma-separated values (RFC 4180 §2) with the same columns whatever is in them: names of columns, instants and numbers, so
 * that no field needs quotes and none is taken for a formula.
 */
export function usageCsv({ rows }: Usage): string[] {
  const titles = [
    'at',
    'offered',
    'admitted',
    ...windows.map((window) => `refused_${window}`),
    'banned',
    'undecided',
    'unauthorized',
  ];
  const lines = rows.map(({ at, offered, admitted, refused, banned, undecided = 0, unauthorized = 0 }) => {
    const byWindow = windows.map((window) => refused[window] ?? 0);
    return [at, offered, admitted, ...byWindow, banned, undecided, unauthorized].join(',');
  });
  return [titles.join(','), ...lines];
}

function refusedBy({ refused }: UsageRow): number {
  return Object.values(refused).reduce((sum, requests) => sum + requests, 0);
}

function sumOf(rows: readonly UsageRow[]): UsageRow {
  const refused: Record<string, number> = {};
  const sum = { at: '', offered: 0, admitted: 0, refused, banned: 0, undecided: 0, unauthorized: 0 };
  for (const row of rows) {
    sum.offered += row.offered;
    sum.admitted += row.admitted;
    sum.banned += row.banned;
    sum.undecided += row.undecided ?? 0;
    sum.unauthorized += row.unauthorized ?? 0;
    for (const [name, requests] of Object.entries(row.refused))
      refused[name] = (refused[name] ?? 0) + requests;
  }
  return sum;
}

/** A line for each key in a month, for bills. A key that was removed has neither name nor plan. */
export function monthCsv({ keys }: MonthUsage): string[] {
  const lines = keys.map(({ id, name = '', plan = '', offered, admitted }) =>
    [id, name, plan, offered, admitted, offered - admitted].map(csvField).join(','),
  );
  return ['id,name,plan,offered,admitted,refused', ...lines];
}

/** The keys that sent requests, first those that were admitted most. */
export function monthTable({ month, keys }: MonthUsage, screen: Screen): string[] {
  const busy = keys.filter(({ offered }) => offered > 0).sort((a, b) => b.admitted - a.admitted);
  if (busy.length === 0) return [`No key sent a request in ${month}.`];
  const columns: readonly Column[] = [
    { title: 'KEY', cutsTo: 12 },
    { title: 'PLAN', cutsTo: 6 },
    { title: 'OFFERED', align: 'right' },
    { title: 'ADMITTED', align: 'right' },
    { title: 'REFUSED', align: 'right' },
    { title: 'NAME', cutsTo: 4 },
  ];
  const rows = busy.map(({ id, name = '', plan = '(removed)', offered, admitted }) => [
    id,
    plan,
    figure(offered),
    figure(admitted),
    figure(offered - admitted),
    name,
  ]);
  return table(columns, rows, screen);
}

/** What a bill must not overlook. */
export function monthNotice({ month, fromAt, toAt }: MonthUsage): string | undefined {
  if (!fromAt.startsWith(`${month}-01T00:00`)) return `The record of ${month} begins ${instant(fromAt)} UTC.`;
  return toAt.startsWith(month)
    ? `${month} is not over: these are its requests until ${instant(toAt)} UTC.`
    : undefined;
}

/** A line for each key, for a mailing list: who it is, and how much it calls. */
export function callersCsv({ callers }: Callers): string[] {
  const lines = callers.map(({ id, name = '', plan = '', requests, lastSeenMs }) =>
    [id, name, plan, requests, new Date(lastSeenMs).toISOString()].map(csvField).join(','),
  );
  return ['id,name,plan,requests,last_call', ...lines];
}

/** RFC 4180 §2.6 and §2.7. Spreadsheets take a field that begins with one of these signs for a formula, so it gets a quote in front. */
function csvField(value: string | number): string {
  const text = oneLine(String(value));
  const safe = /^[=+\-@\t]/.test(text) && typeof value === 'string' ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function callersTable({ callers, more = 0 }: Callers, nowMs: number, screen: Screen): string[] {
  const columns: readonly Column[] = [
    { title: 'KEY', cutsTo: 12 },
    { title: 'PLAN', cutsTo: 6 },
    { title: 'REQUESTS', align: 'right' },
    { title: '4XX', align: 'right' },
    { title: '5XX', align: 'right' },
    { title: 'LAST CALL', align: 'right' },
    { title: 'NAME', cutsTo: 4 },
  ];
  const rows = callers.map((caller) => [
    caller.id,
    // A key that was removed from the configuration meanwhile is on no plan.
    caller.plan ?? '(removed)',
    figure(caller.requests),
    figure(caller.clientErrors),
    figure(caller.serverErrors),
    ago(caller.lastSeenMs, nowMs),
    caller.name ?? '',
  ]);
  const rest = more === 0 ? [] : [`and ${figure(more)} more: --limit N shows up to 10,000`];
  return [...table(columns, rows, screen), ...rest];
}
