import { cutText, oneLine, padText, widthOf, wrapText } from '../../shared/terminal/text-width.ts';
import type { KeyItem, State } from '../admin/api-shapes.ts';
import { incompleteText, processesTable, usualVersion } from '../admin/fleet-view.ts';
import { stateCell } from '../admin/keys-view.ts';
import { clock, counted, duration, figure, instant, milliseconds, rate } from '../output/figures.ts';
import type { Screen, Tone } from '../output/screen.ts';
import { table } from '../output/table.ts';

/** What `top` shows. */
export interface TopData {
  readonly state: State;
  /** Of the last 24 hours, most first. */
  readonly busiest: readonly KeyItem[];
  readonly mostRefused: readonly KeyItem[];
  /** Why nothing is known of the keys. */
  readonly keysNotice?: string | undefined;
}

export interface TopScreen extends Screen {
  /** Absent where a picture may be as long as it likes: then lists are cut to the length of their own. */
  readonly rows?: number;
}

const listedMax = 10;
/** Where no width is known, the time stands at the right of so many columns. */
const pageColumns = 100;

/** Of each list as much is shown as the rows allow, and this at least. */
const listedMin = 2;

/**
 * The picture as lines, none longer and no more of them than the screen has: how it is first, then how much and how slow,
 * then processes, targets and keys.
 *
 * @param notice what is wrong with the picture itself: that the gateway does not answer any more
 */
export function topPicture(
  { state, busiest, mostRefused, keysNotice }: TopData,
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
    ...healthLines(state, nowMs, screen),
    '',
    ...figureLines(state, nowMs, screen),
  ];
  const targets = targetsTable(state, screen);
  const processes = processesTable(worstFirst(state, version), nowMs, screen);
  const keys =
    keysNotice === undefined
      ? keysTables(busiest, mostRefused, screen)
      : ['KEYS', ...wrapText(keysNotice, columns)];
  const lists = [processes, targets, keys].filter((list) => list.length > 1);
  const room = rows - head.length - 2 * lists.length;
  const lengths = shareRows(
    lists.map((list) => list.length - 1),
    room,
  );
  const lines = [
    ...head,
    ...lists.flatMap((list, index) => [
      '',
      // The lists of keys are the first of many in any case.
      ...(list === keys ? list.slice(0, 1 + (lengths[index] ?? 0)) : shortened(list, lengths[index] ?? 0)),
    ]),
  ];
  return lines.slice(0, rows);
}

const toneOf: Readonly<Record<string, Tone>> = { bad: 'bad', warning: 'warning' };

/** Whether it is well, and all that is not, a sentence each with since when. */
function healthLines({ verdict, isComplete }: State, nowMs: number, { columns, paint }: Screen): string[] {
  const { severity, sentence, faults } = verdict;
  const wrapped = (tone: Tone | undefined, text: string) =>
    wrapText(text, columns).map((line) => (tone === undefined ? line : paint(tone, line)));
  return [
    ...(severity === 'well' ? wrapped('good', sentence) : []),
    ...faults.flatMap((fault) => {
      const atMs = Date.parse(fault.sinceAt);
      const since = `Since ${clock(atMs, nowMs)} UTC, ${duration(nowMs - atMs)}.`;
      return wrapped(toneOf[fault.severity], `${fault.text} ${since}`);
    }),
    ...(isComplete ? [] : wrapped('warning', incompleteText)),
  ];
}

/** The sums over all processes. Percentiles cannot be added: where processes differ, the least and the largest. */
function figureLines({ processes, store }: State, nowMs: number, { columns, paint }: Screen): string[] {
  const sum = (of: (one: State['processes'][number]) => number) =>
    processes.reduce((total, one) => total + of(one), 0);
  const outcomes = ['2xx', '3xx', '4xx', '429', '5xx'].map((name) => {
    const perSecond = sum((one) => one.outcomes[name] ?? 0);
    const text = `${name} ${rate(perSecond)}`;
    // A 5xx may be the client's fault: a method that nobody knows.
    if (name === '5xx' && perSecond > 0 && sum((one) => one.failuresPerSecond) > 0)
      return `  ${paint('bad', text)}`;
    return `  ${name === '429' && perSecond > 0 ? paint('warning', text) : text}`;
  });
  const span = (of: (one: State['processes'][number]) => number | undefined) => {
    const known = processes.flatMap((one) => of(one) ?? []);
    const [least, most] = [Math.min(...known), Math.max(...known)].map((ms) => milliseconds(ms));
    if (known.length === 0) return '–';
    return least === most ? `${least} ms` : `${least} to ${most} ms`;
  };
  const since = store.sinceAt === undefined ? '' : `, ${duration(nowMs - Date.parse(store.sinceAt))}`;
  const storeText =
    store.kind === 'memory' ? 'memory' : store.available ? `Redis, there${since}` : `Redis, away${since}`;
  const [first, ...others] = outcomes;
  return [
    ['requests/s', rate(sum((one) => one.requestsPerSecond)), `   of these${first}`, ...others],
    [
      'under way',
      `${counted(
        sum((one) => one.inFlight),
        'request',
      )},`,
      ` ${counted(
        sum((one) => one.connections),
        'connection',
      )}`,
      `   store  ${storeText}`,
    ],
    ['gateway', `p50 ${span((one) => one.p50Ms)}`, `   p99 ${span((one) => one.p99Ms)}`],
    ['upstream', `p50 ${span((one) => one.upstreamP50Ms)}`, `   p99 ${span((one) => one.upstreamP99Ms)}`],
  ].flatMap(([name = '', ...parts]) => partLines(name, parts, columns));
}

/** The parts behind their name, on as many lines as they need: of a figure that is cut another one would be left. */
function partLines(name: string, parts: readonly string[], columns: number): string[] {
  const lines: string[] = [];
  let line = padText(name, 12, 'right');
  let isEmpty = true;
  for (const part of parts) {
    if (!isEmpty && widthOf(withoutColours(line + part)) > columns) {
      lines.push(line);
      line = ' '.repeat(12);
      isEmpty = true;
    }
    line += isEmpty ? part.trimStart() : part;
    isEmpty = false;
  }
  return [...lines, line].map((one) =>
    widthOf(withoutColours(one)) > columns ? cutText(withoutColours(one), columns) : one,
  );
}

/** Those in front that somebody should look at. */
function worstFirst(state: State, version: string): Pick<State, 'processes' | 'config'> {
  const badness = (one: State['processes'][number]) =>
    Number(one.configVersion !== version) +
    Number(!one.store.available) +
    Number(one.phase !== 'serving') +
    Number(one.healthyTargets < one.targets);
  return { ...state, processes: state.processes.toSorted((a, b) => badness(b) - badness(a)) };
}

function targetsTable({ upstreams }: State, screen: Screen): string[] {
  const targets = upstreams.flatMap(({ name, targets }) => targets.map((target) => ({ name, ...target })));
  return table(
    [
      { title: 'UPSTREAM', cutsTo: 8 },
      { title: 'TARGET', cutsTo: 12 },
      { title: 'HEALTH' },
      { title: 'IN FLIGHT', align: 'right' },
    ],
    targets
      .toSorted((a, b) => Number(a.healthy) - Number(b.healthy))
      .map(({ name, address, healthy, inFlight }) => [
        name,
        address,
        healthy ? { text: 'healthy', tone: 'good' } : { text: 'not healthy', tone: 'bad' },
        figure(inFlight),
      ]),
    screen,
  );
}

/** The busiest and the most refused keys, side by side. */
function keysTables(busiest: readonly KeyItem[], mostRefused: readonly KeyItem[], screen: Screen): string[] {
  const half = Math.floor((screen.columns - 2) / 2);
  const side = (title: string, keys: readonly KeyItem[], figureOf: (key: KeyItem) => number) =>
    table(
      [
        { title, cutsTo: 8 },
        { title: '24 H', align: 'right' },
        { title: 'STATE' },
        { title: 'PLAN', cutsTo: 4 },
      ],
      keys
        .filter((key) => figureOf(key) > 0)
        .map((key) => [key.id, figure(figureOf(key)), stateCell(key.state), key.plan]),
      { ...screen, columns: half },
    );
  const left = side('BUSIEST KEYS', busiest, (key) => key.offered24h ?? 0);
  const right = side('MOST REFUSED', mostRefused, (key) => key.refused24h ?? 0);
  const length = Math.max(left.length, right.length);
  const widest = Math.max(...left.map((line) => widthOf(withoutColours(line))));
  const column = Number.isFinite(half) ? half : widest;
  return Array.from({ length }, (_, index) => {
    const line = left[index] ?? '';
    const spaces = ' '.repeat(Math.max(0, column + 2 - widthOf(withoutColours(line))));
    return right[index] === undefined ? line : line + spaces + right[index];
  });
}

function withoutColours(line: string): string {
  return line.replace(/\u001b\[\d+m/g, '');
}

/** How many rows of each list are shown: all, where there is room; else the long ones give way to the short ones. */
function shareRows(lengths: readonly number[], room: number): number[] {
  const wanted = lengths.map((length) => Math.min(length, listedMax));
  const given = wanted.map((length) => Math.min(length, listedMin));
  let left = room - given.reduce((sum, length) => sum + length, 0);
  for (let took = true; took && left > 0; ) {
    took = false;
    wanted.forEach((length, index) => {
      const now = given[index] ?? 0;
      if (left <= 0 || now >= length) return;
      given[index] = now + 1;
      left -= 1;
      took = true;
    });
  }
  return given;
}

/** A table with so many rows, the last of which says how many more there are. */
function shortened([titles = '', ...lines]: readonly string[], length: number): string[] {
  if (lines.length <= length) return [titles, ...lines];
  const shown = lines.slice(0, Math.max(0, length - 1));
  return [titles, ...shown, `and ${figure(lines.length - shown.length)} more`];
}
