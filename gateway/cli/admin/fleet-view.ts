import { cutText, wrapText } from '../../shared/terminal/text-width.ts';
import { counted, duration, figure, instant, milliseconds, rate } from '../output/figures.ts';
import type { Screen } from '../output/screen.ts';
import { type Cell, type Column, type Row, table } from '../output/table.ts';
import { timeList } from '../output/time-list.ts';
import type { Changes, Events, GatewayProcess, State } from './api-shapes.ts';

export const incompleteText = 'Redis gave no answer: only what the process that answered knows is shown.';

const processColumns: readonly Column[] = [
  { title: 'PROCESS', cutsTo: 10 },
  { title: 'WORKER', align: 'right', isOptional: true },
  { title: 'PHASE' },
  { title: 'UP', align: 'right' },
  { title: 'REQ/S', align: 'right' },
  { title: 'P50 MS', align: 'right' },
  { title: 'P99 MS', align: 'right' },
  { title: 'IN FLIGHT', align: 'right', isOptional: true },
  { title: 'TARGETS', align: 'right' },
  { title: 'VERSION' },
];

export function processesTable(
  { processes, config }: Pick<State, 'processes' | 'config'>,
  nowMs: number,
  screen: Screen,
): string[] {
  const usual = usualVersion(processes, config.version);
  return table(
    processColumns,
    processes.map((one) => processRow(one, usual, nowMs)),
    screen,
  );
}

/** Of a configuration's version that many digits are enough to tell it from others. */
const versionDigits = 8;

function processRow(one: GatewayProcess, usualVersion: string, nowMs: number): Row {
  const isHealthy = one.targets > 0 && one.healthyTargets === one.targets;
  const isOther = one.configVersion !== usualVersion;
  const phase: Cell = one.phase === 'serving' ? { text: one.phase } : { text: one.phase, tone: 'warning' };
  return [
    `${one.host}:${one.pid}`,
    one.worker === undefined ? '' : String(one.worker),
    phase,
    duration(nowMs - Date.parse(one.startedAt)),
    rate(one.requestsPerSecond),
    milliseconds(one.p50Ms),
    milliseconds(one.p99Ms),
    figure(one.inFlight),
    { text: `${one.healthyTargets} of ${one.targets}`, ...(!isHealthy && { tone: 'bad' as const }) },
    {
      text: `${one.configVersion.slice(0, versionDigits)}${isOther ? ' other' : ''}`,
      ...(isOther && { tone: 'bad' as const }),
    },
  ];
}

/** The configuration version that most processes have; of several the one of the process that answered. */
export function usualVersion(
  processes: readonly Pick<GatewayProcess, 'configVersion'>[],
  ownVersion: string,
): string {
  const counts = new Map<string, number>([[ownVersion, 0]]);
  for (const { configVersion } of processes) counts.set(configVersion, (counts.get(configVersion) ?? 0) + 1);
  const [first] = [...counts].sort(([, a], [, b]) => b - a);
  return first?.[0] ?? ownVersion;
}

/** The newest first; what went wrong stands below its sentence. */
export function changesLines({ changes }: Changes, screen: Screen): string[] {
  const rows = changes.map(({ at, action, by, files, text, inForce, before, after, error }) => {
    const members = typeof before === 'string' ? '' : membersText(before, after);
    const { processes = 0, of = 0 } = inForce ?? {};
    const where = inForce && `In force on ${figure(processes)} of ${counted(of, 'process', 'processes')}.`;
    return {
      at,
      cells: [files?.join(', ') ?? by],
      text: [text, where, members && `(${members})`].filter(Boolean).join(' '),
      tone: isFailure(action) ? ('bad' as const) : undefined,
      below: error === undefined ? [] : errorLines(error, screen.columns),
    };
  });
  return timeList(['BY', 'CHANGE'], rows, screen);
}

/** The newest first. */
export function eventsLines({ events }: Events, screen: Screen): string[] {
  const rows = events.map(({ at, beganAt, kind, group, text, processes }) => {
    const began = beganAt === undefined ? '' : ` It began at ${instant(beganAt)}.`;
    const seen = processes === 1 ? '' : ` Seen by ${figure(processes)} processes.`;
    const isBad = isFailure(kind) || (group === 'incident' && beganAt === undefined);
    return { at, cells: [group], text: text + began + seen, tone: isBad ? ('bad' as const) : undefined };
  });
  return timeList(['KIND', 'EVENT'], rows, screen);
}

type Changed = Changes['changes'][number]['before'];

/** "plan free → pro, name Acme". */
function membersText(before: Changed, after: Changed): string {
  const [from, to] = [before, after].map((members) => (typeof members === 'object' ? members : {}));
  const names = new Set([...Object.keys(from ?? {}), ...Object.keys(to ?? {})]);
  const parts = [...names].map((name) => {
    if (from?.[name] === undefined) return `${name} ${memberText(to?.[name])}`;
    return `${name} ${memberText(from[name])} → ${to?.[name] === undefined ? 'none' : memberText(to[name])}`;
  });
  return parts.join(', ');
}

function memberText(value: unknown): string {
  if (typeof value === 'string') {
    return /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? instant(value).slice(0, 16) : value;
  }
  if (typeof value === 'number') return figure(value);
  if (Array.isArray(value)) return value.map(memberText).join(' ');
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.entries(value)
    .map(([name, member]) => `${name} ${memberText(member)}`)
    .join(' ');
}

/** What was wrong with a configuration. A line of its file, with a caret below it, is not wrapped. */
function errorLines(error: string, columns: number): string[] {
  const room = columns - indent.length;
  return error
    .trimEnd()
    .split('\n')
    .flatMap((line) => (line.startsWith(' ') ? [cutText(line, room)] : wrapText(line, room)))
    .map((line) => indent + line);
}

const indent = '    ';

function isFailure(action: string): boolean {
  return action.endsWith('_failed');
}
