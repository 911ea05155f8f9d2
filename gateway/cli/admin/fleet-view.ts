import type { ChangesShown, EventsShown } from '../../admin/api/fleet/changes-view.ts';
import type { FleetState, GatewayProcess } from '../../admin/wires/fleet.ts';
import { cutText, wrapText } from '../../shared/terminal/text-width.ts';
import { counted, duration, figure, milliseconds, rate } from '../../shared/words/figures.js';
import { instant } from '../output/figures.ts';
import type { Screen } from '../output/screen.ts';
import { type Column, table } from '../output/table.ts';
import { timeList } from '../output/time-list.ts';

export const incompleteText =
  'Redis did not answer, so these are only the figures of the process that answered.';

/** Makes the lines about the processes. The first line is a warning if the figures of other processes are missing. */
function withNotice(isComplete: boolean, lines: readonly string[]): readonly string[] {
  return isComplete ? lines : [incompleteText, ...lines];
}

export function processesLines(state: FleetState, screen: Screen, nowMs: number): readonly string[] {
  return withNotice(state.isComplete, table(processColumns(state, nowMs), state.processes, screen));
}

/** The number of digits of a configuration version that a table shows. Eight digits suffice to distinguish versions. */
const versionDigits = 8;

export function processColumns(
  { processes, config }: Pick<FleetState, 'processes' | 'config'>,
  nowMs: number,
): readonly Column<GatewayProcess>[] {
  const usual = usualVersion(processes, config.version);
  return [
    { title: 'PROCESS', cell: ({ host, pid }) => `${host}:${pid}`, cutsTo: 10 },
    { title: 'WORKER', cell: ({ worker }) => worker, align: 'right', isOptional: true },
    {
      title: 'PHASE',
      cell: ({ phase }) => ({ text: phase, tone: phase === 'serving' ? undefined : 'warning' }),
    },
    { title: 'UP', cell: ({ startedAt }) => duration(nowMs - Date.parse(startedAt)), align: 'right' },
    { title: 'REQ/S', cell: ({ requestsPerSecond }) => rate(requestsPerSecond), align: 'right' },
    { title: 'P50 MS', cell: ({ p50Ms }) => milliseconds(p50Ms), align: 'right' },
    { title: 'P99 MS', cell: ({ p99Ms }) => milliseconds(p99Ms), align: 'right' },
    { title: 'IN FLIGHT', cell: ({ inFlight }) => inFlight, align: 'right', isOptional: true },
    {
      title: 'TARGETS',
      align: 'right',
      cell({ targets, healthyTargets }) {
        const isHealthy = targets > 0 && healthyTargets === targets;
        return { text: `${healthyTargets} of ${targets}`, tone: isHealthy ? undefined : 'bad' };
      },
    },
    {
      title: 'VERSION',
      cell({ configVersion }) {
        const text = configVersion.slice(0, versionDigits);
        return configVersion === usual ? text : { text: `${text} other`, tone: 'bad' };
      },
    },
  ];
}

/**
 * Returns the configuration version that most processes have. If two versions are equally common, returns the version of the
 * process that answered.
 */
export function usualVersion(
  processes: readonly Pick<GatewayProcess, 'configVersion'>[],
  ownVersion: string,
): string {
  const counts = new Map<string, number>([[ownVersion, 0]]);
  for (const { configVersion } of processes) counts.set(configVersion, (counts.get(configVersion) ?? 0) + 1);
  const [first] = [...counts].sort(([, a], [, b]) => b - a);
  return first?.[0] ?? ownVersion;
}

/** Makes the lines about changes, the newest change first. The error of a failed change is in the lines below the change. */
export function changesLines({ changes, isComplete }: ChangesShown, screen: Screen): readonly string[] {
  // The list may be incomplete, because other processes may have more changes, and Redis may have lost the list.
  if (changes.length === 0) return withNotice(isComplete, ['No change is on record.']);
  const rows = changes.map(({ at, action, by, files, text, inForce, before, after, error }) => {
    // The text of a reverted or retried plan states the limits.
    const isInText = typeof before === 'string' || action.startsWith('plan.');
    const members = isInText ? '' : membersText(before, after);
    const { processes = 0, of = 0 } = inForce ?? {};
    const where = inForce && `In force on ${figure(processes)} of ${counted(of, 'process', 'processes')}.`;
    return {
      at,
      label: files?.join(', ') ?? by,
      text: [text, where, members && `(${members})`].filter(Boolean).join(' '),
      tone: isFailure(action) ? ('bad' as const) : undefined,
      below: error === undefined ? [] : errorLines(error, screen.columns),
    };
  });
  return withNotice(isComplete, timeList(['BY', 'CHANGE'], rows, screen));
}

/** Makes the lines about events, the newest event first. */
export function eventsLines({ events, isComplete }: EventsShown, screen: Screen): readonly string[] {
  if (events.length === 0) return withNotice(isComplete, ['No event of this kind and period is on record.']);
  const rows = events.map(({ at, beganAt, kind, group, text, processes }) => {
    const began = beganAt === undefined ? '' : ` It began at ${instant(beganAt)}.`;
    const seen = processes === 1 ? '' : ` Seen by ${figure(processes)} processes.`;
    const isBad = isFailure(kind) || (group === 'incident' && beganAt === undefined);
    return { at, label: group, text: text + began + seen, tone: isBad ? ('bad' as const) : undefined };
  });
  return withNotice(isComplete, timeList(['KIND', 'EVENT'], rows, screen));
}

type Changed = ChangesShown['changes'][number]['before'];

/** Makes a text such as "plan free → pro, name Acme". */
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

/**
 * Makes the lines about an error of a configuration. A quoted line of the file is not wrapped, because a caret in the next line marks the
 * position of the error.
 */
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
