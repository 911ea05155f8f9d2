import { keySchema } from '../../keys/key-schema.ts';
import { toLimits } from '../../keys/limit-fields.ts';
import { wrapText } from '../../shared/terminal/text-width.ts';
import { ago, beginning, clock, counted, ending, figure, instant, span } from '../output/figures.ts';
import { type Screen, toneOf } from '../output/screen.ts';
import { type Cell, type Column, table } from '../output/table.ts';
import type { KeyDetail, KeyItem } from './api-shapes.ts';
import { refusedInWords } from './usage-view.ts';

const keyColumns: readonly Column[] = [
  { title: 'KEY', cutsTo: 12 },
  { title: 'PLAN', cutsTo: 6 },
  { title: 'STATE' },
  { title: 'FULLEST WINDOW' },
  { title: 'OFFERED 24 H', align: 'right' },
  { title: 'REFUSED 24 H', align: 'right' },
  { title: 'LAST SEEN', align: 'right' },
  { title: 'NAME', cutsTo: 4 },
];

export function keysTable(keys: readonly KeyItem[], nowMs: number, screen: Screen): string[] {
  const rows = keys.map((key) => [
    key.id,
    key.plan,
    stateCell(key.state),
    fullestWindow(key),
    // Without a usage record there are no figures: an empty cell is not a zero.
    key.offered24h === undefined ? '' : figure(key.offered24h),
    key.refused24h === undefined ? '' : figure(key.refused24h),
    key.lastSeenMs === undefined ? '–' : ago(key.lastSeenMs, nowMs),
    key.name ?? '',
  ]);
  return table(keyColumns, rows, screen);
}

export function stateCell(state: string): Cell {
  return { text: state, tone: toneOf(state) };
}

/** The window of which the largest share is used, `minute 60/60`. */
function fullestWindow({ windows }: KeyItem): string {
  const [fullest] = windows.toSorted((a, b) => b.used / b.limit - a.used / a.limit);
  return fullest === undefined ? '' : `${fullest.name} ${figure(fullest.used)}/${figure(fullest.limit)}`;
}

/** `keys.yaml:12`, or `the directory`. */
export function placeText({ source, file, line }: Pick<KeyItem, 'source' | 'file' | 'line'>): string {
  return file === undefined ? `the ${source}` : `${file}:${line}`;
}

/** `day 5,000 until 2026-11-25 24:00 UTC, in 1 day 13 hours`; before it begins also from when on, and for how long. */
export function grantText({ limits, fromMs, untilMs }: NonNullable<KeyItem['grant']>, nowMs: number): string {
  const what = toLimits(limits)
    .map(({ window, max }) => `${window} ${figure(max)}`)
    .join(', ');
  if (fromMs === undefined) return `${what} until ${ending(untilMs)}, in ${span(untilMs - nowMs)}`;
  return `${what} from ${beginning(fromMs)}, in ${span(fromMs - nowMs)}, until ${ending(untilMs)}, for ${span(untilMs - fromMs)}`;
}

const shownApart = ['id', 'plan', 'name', 'limits', 'operations', 'disabled', 'secrets'];
/** Members of a stated key without a line of their own. */
const otherMembers = Object.keys(keySchema.shape).filter((name) => !shownApart.includes(name));

function memberText(member: unknown): string {
  if (Array.isArray(member)) return member.map(memberText).join(', ');
  return typeof member === 'string' ? member : JSON.stringify(member);
}

/** With the space behind them: of the longest, `this minute`. */
const factNamesWidth = 13;

/** One key: why it gets what it gets first, then everything about it. */
export function keyLines(key: KeyDetail, nowMs: number, screen: Screen): string[] {
  const { paint, columns } = screen;
  const facts: (readonly [string, string])[] = [
    ['state', key.state],
    ['plan', key.plan],
    ...(key.name === undefined ? [] : [['name', key.name] as const]),
    ...(key.source === undefined ? [] : [['written in', placeText(key)] as const]),
    ...(key.operations === undefined ? [] : [['may call', key.operations.join(', ')] as const]),
    ...otherMembers.flatMap((name) =>
      key[name] === undefined ? [] : [[name, memberText(key[name])] as const],
    ),
    ...key.windows.map(
      ({ name, limit, used, resetMs }) =>
        [
          `this ${name}`,
          `${figure(used)} of ${figure(limit)} used, starts over at ${clock(resetMs, nowMs)} UTC`,
        ] as const,
    ),
    ...(key.ban === undefined
      ? []
      : [['ban', `until ${clock(key.ban.untilMs, nowMs)} UTC, level ${key.ban.level}`] as const]),
    ...(key.grant === undefined ? [] : [['grant', grantText(key.grant, nowMs)] as const]),
    ['strikes', `${counted(key.strikes, 'refusal that counts', 'refusals that count')} towards the next ban`],
    ['last seen', key.lastSeenMs === undefined ? 'not on record' : ago(key.lastSeenMs, nowMs)],
    ...(key.offered24h === undefined
      ? []
      : [
          [
            'last 24 h',
            `${counted(key.offered24h, 'request')}, ${figure(key.refused24h ?? 0)} refused`,
          ] as const,
        ]),
    ...key.secrets.map(
      ({ digestStart, createdAt, lastUsedAt, unauthorized, expiresAt, isExpired }) =>
        [
          'secret',
          [
            `${digestStart}… (of its SHA-256)`,
            ...(createdAt === undefined ? [] : [`issued ${instant(createdAt).slice(0, 10)}`]),
            ...(lastUsedAt === undefined ? [] : [`last used ${ago(Date.parse(lastUsedAt), nowMs)}`]),
            expiresAt === undefined
              ? 'never expires'
              : `${isExpired ? 'expired' : 'expires'} ${instant(expiresAt)} UTC`,
            ...(unauthorized === undefined ? [] : [unauthorizedText(unauthorized, nowMs)]),
          ].join(', '),
        ] as const,
    ),
  ];
  const lines = [
    ...wrapText(key.why.sentence, columns),
    '',
    ...table(
      [{ title: 'KEY' }, { title: key.id, cutsTo: 12 }],
      facts.flatMap(([name, text]) =>
        name === 'state'
          ? [[name, stateCell(text)]]
          : wrapText(text, columns - factNamesWidth).map((line, index) => [index === 0 ? name : '', line]),
      ),
      screen,
    ),
  ];
  const { operations24h = [], recentRefusals = [] } = key;
  if (operations24h.length > 0) {
    lines.push(
      '',
      ...table(
        [
          { title: 'OPERATION, 24 H', cutsTo: 12 },
          { title: 'REQUESTS', align: 'right' },
          { title: '4XX', align: 'right' },
          { title: '5XX', align: 'right' },
        ],
        operations24h.map(({ operationId, requests, clientErrors, serverErrors }) => [
          operationId === '' ? '(none)' : operationId,
          figure(requests),
          figure(clientErrors),
          figure(serverErrors),
        ]),
        screen,
      ),
    );
  }
  if (recentRefusals.length > 0) {
    lines.push(
      '',
      ...table(
        [
          { title: 'REFUSED IN THE MINUTE (UTC)' },
          { title: 'OFFERED', align: 'right' },
          { title: 'ADMITTED', align: 'right' },
          { title: 'REFUSED BY', cutsTo: 10 },
        ],
        recentRefusals.map((row) => [
          instant(row.at).slice(0, 16),
          figure(row.offered),
          figure(row.admitted),
          refusedInWords(row),
        ]),
        screen,
      ),
    );
  }
  return lines.map((line) => (line === key.why.sentence ? paint('title', line) : line));
}

/** "131 requests while it was not valid, last 5 min ago" */
function unauthorizedText({ requests, lastAt }: { requests: number; lastAt: string }, nowMs: number): string {
  return `${counted(requests, 'request')} while it was not valid, last ${ago(Date.parse(lastAt), nowMs)}`;
}
