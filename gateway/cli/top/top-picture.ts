import type { FleetState } from '../../admin/wires/fleet/fleet.ts';
import type { KeyItem } from '../../admin/wires/keys/keys.ts';
import { lackingText, missingText } from '../../admin/words/list.js';
import { cutText, oneLine, padText, widthOf, wrapText } from '../../shared/terminal/text-width.ts';
import { counted, duration, figure, milliseconds, rate } from '../../shared/words/figures.js';
import { processColumns, usualVersion } from '../admin/fleet.ts';
import { stateCell } from '../admin/keys-view.ts';
import { clock, instant } from '../output/figures.ts';
import type { Screen, Tone } from '../output/screen.ts';
import { type Cell, type Column, layOut } from '../output/table.ts';

export interface TopData {
  readonly state: FleetState;
  /** The keys with most requests in the last 24 hours. */
  readonly busiest: readonly KeyItem[];
  /** The keys with most refusals in the last 24 hours. */
  readonly mostRefused: readonly KeyItem[];
  /** What the lists of keys lack while Redis is away. */
  readonly keysLack?: readonly string[] | undefined;
  /** The reason why there is no data about keys. */
  readonly keysNotice?: string | undefined;
}

export interface TopScreen extends Screen {
  /** The height of the screen. Without a height, the output may have any length, and each list has up to `listedMax` rows. */
  readonly rows?: number;
}

const listedMax = 10;
/** The number of rows that a list shows even if the screen is too small for it. */
const listedMin = 2;
/** The width of the title line if the width of the screen is unknown. */
const pageColumns = 100;
/** On a narrower screen, the lists of keys do not show state and plan. */
const keyDetailsColumnsMin = 66;

/**
 * Makes the lines of the screen. The lines show health, then rates and times, then processes, targets and keys.
 *
 * @param notice a warning about the screen itself: the gateway does not answer any more
 */
export function topPicture(
  { state, busiest, mostRefused, keysLack = [], keysNotice }: TopData,
  { nowMs, notice }: { readonly nowMs: number; readonly notice?: string | undefined },
  screen: TopScreen,
): string[] {
  const { columns, rows = Number.POSITIVE_INFINITY, paint } = screen;
  const version = usualVersion(state.processes, state.config.version);
  const title = `tollgate  ${oneLine(state.environment)}  configuration ${oneLine(version)}`;
  const time = `${instant(nowMs)} UTC`;
  const titleColumns = (Number.isFinite(columns) ? columns : pageColumns) - widthOf(time);
  const head = [
    paint('title', padText(`${cutText(title, columns - widthOf(time) - 1)} `, titleColumns, 'right') + time),
    ...(notice === undefined ? [] : wrapText(notice, columns).map((line) => paint('bad', line))),
    ...healthLines(state, keysLack, nowMs, screen),
    '',
    ...figureLines(state, nowMs, screen),
  ];
  const keys =
    keysNotice === undefined
      ? keysLines(busiest, mostRefused, screen)
      : ['KEYS', ...wrapText(keysNotice, columns)];
  const processes = worstFirst(state, version);
  const lists = [
    layOut(processColumns({ ...state, processes }, nowMs), processes, screen).lines,
    targetLines(state, screen),
    keys,
  ].filter((list) => list.length > 1);
  const lengths = shareRows(
    lists.map((list) => list.length - 1),
    rows - head.length - 2 * lists.length,
  );
  const lines = lists.flatMap((list, index) => {
    const length = lengths[index] ?? 0;
    // A line such as "and 7 more" would be wrong for the lists of keys, because the gateway sends only the first keys of each list.
    return ['', ...(list === keys ? list.slice(0, 1 + length) : shortened(list, length))];
  });
  return [...head, ...lines].slice(0, rows);
}

const toneOf: Readonly<Record<string, Tone>> = { bad: 'bad', warning: 'warning' };

/** Returns the verdict if everything is well. If there are faults, returns each fault with the time at which it began. */
function healthLines(
  { verdict, missing }: FleetState,
  keysLack: readonly string[],
  nowMs: number,
  { columns, paint }: Screen,
): string[] {
  const { severity, sentence, faults } = verdict;
  const wrapped = (tone: Tone | undefined, text: string) =>
    wrapText(text, columns).map((line) => (tone === undefined ? line : paint(tone, line)));
  // The fault of Redis names Redis already.
  const textOfMissing = faults.some(({ code }) => code === 'redis_away') ? lackingText : missingText;
  return [
    ...(severity === 'well' ? wrapped('good', sentence) : []),
    ...faults.flatMap((fault) => {
      const atMs = Date.parse(fault.sinceAt);
      const since = `Since ${clock(atMs, nowMs)} UTC, ${duration(nowMs - atMs)}.`;
      return wrapped(toneOf[fault.severity], `${fault.text} ${since}`);
    }),
    ...(missing === undefined
      ? []
      : wrapped('warning', textOfMissing({ ...missing, what: [...missing.what, ...keysLack] }))),
  ];
}

/** Shows sums over all processes, and the smallest and the largest percentile, because percentiles cannot be added. */
function figureLines({ processes, store }: FleetState, nowMs: number, screen: Screen): string[] {
  type Process = FleetState['processes'][number];
  const sum = (of: (one: Process) => number) => processes.reduce((total, one) => total + of(one), 0);
  const span = (of: (one: Process) => number | undefined) => {
    const known = processes.flatMap((one) => of(one) ?? []);
    const [least, most] = [Math.min(...known), Math.max(...known)].map((ms) => milliseconds(ms));
    if (known.length === 0) return '–';
    return least === most ? `${least} ms` : `${least} to ${most} ms`;
  };
  const failures = sum((one) => one.failuresPerSecond);
  const outcomes = ['2xx', '3xx', '4xx', '429', '5xx'].map((name, index): Cell => {
    const perSecond = sum((one) => one.outcomes[name] ?? 0);
    // A client can cause a 5xx too, for example with an unknown method. If no request counts as failed, `top` does not show the 5xx
    // responses in red.
    const isBad = name === '5xx' && failures > 0;
    const tone = isBad ? 'bad' : name === '429' ? 'warning' : undefined;
    const label = index === 0 ? '   of these  ' : '  ';
    return { text: `${label}${name} ${rate(perSecond)}`, tone: perSecond > 0 ? tone : undefined };
  });
  const redis = `Redis, ${store.available ? 'there' : 'away'}`;
  const since = store.sinceAt && duration(nowMs - Date.parse(store.sinceAt));
  const storeParts =
    store.kind === 'memory' ? ['memory'] : since === undefined ? [redis] : [`${redis},`, ` ${since}`];
  const requests = counted(
    sum(({ inFlight }) => inFlight),
    'request',
  );
  const connections = counted(
    sum((one) => one.connections),
    'connection',
  );
  const lines: readonly (readonly [name: string, ...parts: readonly (string | Cell)[]])[] = [
    ['requests/s', rate(sum((one) => one.requestsPerSecond)), ...outcomes],
    ['under way', `${requests},`, ` ${connections}`, `   store  ${storeParts[0]}`, ...storeParts.slice(1)],
    ['gateway', `p50 ${span((one) => one.p50Ms)}`, `   p99 ${span((one) => one.p99Ms)}`],
    ['upstream', `p50 ${span((one) => one.upstreamP50Ms)}`, `   p99 ${span((one) => one.upstreamP99Ms)}`],
  ];
  return lines.flatMap(([name, ...parts]) => partLines(name, parts, screen));
}

const figureNamesColumns = 12;

/** Makes lines with a name and its figures. A figure is never divided between lines, because a cut number would be wrong. */
function partLines(name: string, parts: readonly (string | Cell)[], { columns, paint }: Screen): string[] {
  const lines = [{ text: padText(name, figureNamesColumns, 'right'), width: figureNamesColumns }];
  for (const part of parts) {
    const { text, tone } = typeof part === 'string' ? { text: part, tone: undefined } : part;
    let line = lines.at(-1);
    if (line === undefined || line.width + widthOf(text) > columns) {
      line = { text: ' '.repeat(figureNamesColumns), width: figureNamesColumns };
      lines.push(line);
    }
    const shown = cutText(line.width === figureNamesColumns ? text.trimStart() : text, columns - line.width);
    const word = shown.trimStart();
    line.text += shown.slice(0, shown.length - word.length) + (tone === undefined ? word : paint(tone, word));
    line.width += widthOf(shown);
  }
  return lines.map(({ text }) => text);
}

function worstFirst({ processes }: FleetState, version: string): FleetState['processes'] {
  const badness = (one: FleetState['processes'][number]) =>
    Number(one.configVersion !== version) +
    Number(!one.store.available) +
    Number(one.phase !== 'serving') +
    Number(one.healthyTargets < one.targets);
  return processes.toSorted((a, b) => badness(b) - badness(a));
}

/** Unhealthy targets come first. */
function targetLines({ upstreams }: FleetState, screen: Screen): string[] {
  const targets = upstreams
    .flatMap(({ name, targets }) => targets.map((target) => ({ name, ...target })))
    .toSorted((a, b) => Number(a.healthy) - Number(b.healthy));
  const columns: readonly Column<(typeof targets)[number]>[] = [
    { title: 'UPSTREAM', cell: ({ name }) => name, cutsTo: 8 },
    { title: 'TARGET', cell: ({ address }) => address, cutsTo: 12 },
    {
      title: 'HEALTH',
      cell: ({ healthy }) =>
        healthy ? { text: 'healthy', tone: 'good' } : { text: 'not healthy', tone: 'bad' },
    },
    { title: 'IN FLIGHT', cell: ({ inFlight }) => inFlight },
  ];
  return layOut(columns, targets, screen).lines;
}

function keysLines(busiest: readonly KeyItem[], mostRefused: readonly KeyItem[], screen: Screen): string[] {
  type Pair = Readonly<Record<'left' | 'right', KeyItem | undefined>>;
  const offered = ({ offered24h = 0 }: KeyItem) => offered24h;
  const refused = ({ refused24h = 0 }: KeyItem) => refused24h;
  const [left, right] = [busiest.filter(offered), mostRefused.filter(refused)];
  const isOptional = screen.columns < keyDetailsColumnsMin;
  const side = (title: string, name: keyof Pair, figureOf: (key: KeyItem) => number): Column<Pair>[] => [
    { title, cell: ({ [name]: key }) => key?.id, cutsTo: 8 },
    { title: '24 H', cell: ({ [name]: key }) => key && figureOf(key), align: 'right' },
    { title: 'STATE', cell: ({ [name]: key }) => key && stateCell(key.state), isOptional },
    { title: 'PLAN', cell: ({ [name]: key }) => key?.plan, cutsTo: 4, isOptional },
  ];
  const pairs = Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    return { left: left[index], right: right[index] };
  });
  const columns = [...side('BUSIEST KEYS', 'left', offered), ...side('MOST REFUSED', 'right', refused)];
  return layOut(columns, pairs, screen).lines;
}

/**
 * Distributes the rows of the screen among the lists. Each list gets at most `listedMax` rows. If the screen is too small, short lists stay
 * complete, and the long lists share the remaining rows.
 */
function shareRows(lengths: readonly number[], room: number): number[] {
  const given = lengths.map((length) => Math.min(length, listedMin));
  for (let left = room - given.reduce((sum, length) => sum + length, 0); left > 0; left--) {
    const growing = [...given.keys()].filter(
      (index) => (given[index] ?? 0) < Math.min(lengths[index] ?? 0, listedMax),
    );
    const [shortest] = growing.sort((a, b) => (given[a] ?? 0) - (given[b] ?? 0));
    if (shortest === undefined) break;
    given[shortest] = (given[shortest] ?? 0) + 1;
  }
  return given;
}

/** Shortens a table to `length` rows. The last row of a shortened table shows how many rows are left out. */
function shortened([titles = '', ...lines]: readonly string[], length: number): string[] {
  if (lines.length <= length) return [titles, ...lines];
  const shown = lines.slice(0, Math.max(0, length - 1));
  return [titles, ...shown, `and ${figure(lines.length - shown.length)} more`];
}
