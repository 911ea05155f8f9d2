import type { KeyDetail } from '../../admin/wires/keys/key.ts';
import type { KeyItem } from '../../admin/wires/keys/keys.ts';
import { type Calls, callsOf, stateText, stateTone } from '../../admin/words/keys.js';
import { emptyText } from '../../admin/words/list.js';
import { refusedInWords } from '../../admin/words/usage.js';
import type { KeyFacts } from '../../capabilities/interfaces/commands.ts';
import { keySchema } from '../../keys/key-schema.ts';
import { wrapText } from '../../shared/terminal/text-width.ts';
import { exemptionWords } from '../../shared/words/exemptions.js';
import { beginning, counted, ending, figure } from '../../shared/words/figures.js';
import { limitsInWords, windowText } from '../../shared/words/limit-names.js';
import { ago, clock, instant, span } from '../output/figures.ts';
import { colourOf } from '../output/list.ts';
import type { Screen } from '../output/screen.ts';
import { type Cell, type Column, factTable, table } from '../output/table.ts';

export function stateCell(state: string): Cell {
  return { text: stateText(state), tone: colourOf(stateTone(state)) };
}

/** Where a key is stored: a file and line such as `keys.yaml:12`, or the key directory. */
export function placeText({ source, file, line }: Pick<KeyItem, 'source' | 'file' | 'line'>): string {
  if (file !== undefined) return `${file}:${line}`;
  return source === 'directory' ? 'the key directory' : 'the configuration';
}

/**
 * Describes a grant, such as `5,000 a day until 2026-11-25 24:00 UTC, in 1 day 13 hours`. The text of a grant that begins later
 * also contains its beginning and its length.
 */
export function grantText(grant: NonNullable<KeyItem['grant']>, nowMs: number): string {
  const { limits = {}, fromMs, untilMs } = grant;
  const what = [limitsInWords(limits), ...exemptionWords(grant)].filter(Boolean).join(', ');
  if (fromMs === undefined) return `${what} until ${ending(untilMs)}, in ${span(untilMs - nowMs)}`;
  return `${what} from ${beginning(fromMs)}, in ${span(fromMs - nowMs)}, until ${ending(untilMs)}, for ${span(untilMs - fromMs)}`;
}

/** Fields of a key that `keyLines` formats one by one. `memberText` formats all other fields. */
const shownApart = ['id', 'plan', 'changes', 'name', 'limits', 'operations', 'disabled', 'secrets'];
const otherMembers = Object.keys(keySchema.shape).filter(
  (name) => !shownApart.includes(name),
) as (keyof KeyDetail)[];

function memberText(member: unknown): string | undefined {
  if (Array.isArray(member)) return member.map(memberText).join(', ');
  return typeof member === 'string' ? member : JSON.stringify(member);
}

/** The first line explains why requests of the key are admitted or refused. */
export function keyLines(
  key: KeyDetail,
  ofCapabilities: readonly KeyFacts[],
  screen: Screen,
  nowMs: number,
): string[] {
  const { recentRefusals = [] } = key;
  const calls = callsOf(key);
  return [
    ...wrapText(key.why.sentence, screen.columns).map((line) => screen.paint('title', line)),
    '',
    ...factTable(key.id, factsOf(key, ofCapabilities, nowMs), screen),
    ...(calls.length === 0 ? [] : ['', ...table(operationColumns, calls, screen)]),
    ...(recentRefusals.length === 0 ? [] : ['', ...table(refusalColumns, recentRefusals, screen)]),
  ];
}

function factsOf(
  key: KeyDetail,
  ofCapabilities: readonly KeyFacts[],
  nowMs: number,
): (readonly [string, string | Cell | undefined])[] {
  const { ban, grant, lastSeenMs, offered24h, refused24h = 0, units24h, strikes } = key;
  return [
    ['state', stateCell(key.state)],
    ['plan', key.plan],
    ...upcomingTexts(key).map((text) => ['plan later', text] as const),
    ['name', key.name],
    ['written in', key.source && placeText(key)],
    ['may call', key.operations?.join(', ')],
    ...otherMembers.map((name) => [name, memberText(key[name])] as const),
    ...key.windows.map(({ name, limit, used, resetMs }) => {
      const text = `${figure(used)} of ${figure(limit)} used, starts over at ${clock(resetMs, nowMs)} UTC`;
      return [`this ${windowText(name)}`, text] as const;
    }),
    ['ban', ban && banText(ban, nowMs)],
    ['grant', grant && grantText(grant, nowMs)],
    ['trial, 24 h', key.trial?.sentence],
    ...ofCapabilities.flatMap((factsOn) => factsOn(key)),
    [
      'strikes',
      strikes === 0 && key.missing
        ? undefined
        : `${counted(strikes, 'refusal that counts', 'refusals that count')} towards the next ban`,
    ],
    ['last seen', lastSeenMs === undefined ? emptyText(key, 'not on record') : ago(lastSeenMs, nowMs)],
    [
      'last 24 h',
      offered24h === undefined
        ? undefined
        : `${counted(offered24h, 'request')}, ${figure(refused24h)} refused${units24h === undefined ? '' : `, ${counted(units24h, 'unit')}`}`,
    ],
    ...key.secrets.map((secret) => ['secret', secretText(secret, nowMs)] as const),
  ];
}

/** Returns the later plans and limits of a key, such as "from 2027-01-01 00:00 UTC plan pro: 600 a minute". */
function upcomingTexts({ plan, upcoming = [] }: KeyDetail): string[] {
  return upcoming.map((later) => {
    const onPlan = later.plan === plan ? '' : ` plan ${later.plan}:`;
    return `from ${beginning(Date.parse(later.fromAt))}${onPlan} ${limitsInWords(later.limits)}`;
  });
}

function banText({ untilMs, level, byHand, reason }: NonNullable<KeyDetail['ban']>, nowMs: number): string {
  if (!byHand) return `until ${clock(untilMs, nowMs)} UTC, level ${level}`;
  return [`until ${ending(untilMs)}`, 'by an operator', reason].filter(Boolean).join(', ');
}

function secretText(
  {
    digestStart,
    createdAt,
    lastUsedAt,
    unauthorized,
    expiresAt,
    isExpired,
    issuedFrom,
    leak,
  }: KeyDetail['secrets'][number],
  nowMs: number,
): string {
  const agoText = (at: string) => ago(Date.parse(at), nowMs);
  const parts = [
    `${digestStart}… (of its SHA-256)`,
    createdAt && `issued ${instant(createdAt).slice(0, 10)}`,
    issuedFrom && `by its holder from ${issuedFrom}…`,
    lastUsedAt && `last used ${agoText(lastUsedAt)}`,
    leak && leakText(leak),
    expiresAt ? `${isExpired ? 'expired' : 'expires'} ${instant(expiresAt)} UTC` : 'never expires',
    unauthorized &&
      `${counted(unauthorized.requests, 'request')} while it was not valid, last ${agoText(unauthorized.lastAt)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

/** Describes a leak, such as `leaked: found by github on 2026-11-25 10:31 UTC (content) at https://…`. */
function leakText({
  at,
  by,
  ended,
  url,
  source,
  ancestor,
}: NonNullable<KeyDetail['secrets'][number]['leak']>): string {
  const what = ancestor === undefined ? 'leaked' : `issued from the leaked ${ancestor}…`;
  const parts = [
    `${what}${ended ? ' and ended' : ''}: reported by ${by} on ${instant(at)} UTC`,
    source && `found in ${source}`,
    url && `at ${url}`,
  ];
  return parts.filter(Boolean).join(' ');
}

const operationColumns: readonly Column<Calls>[] = [
  { title: 'OPERATION, 24 H', cell: ({ operationId }) => operationId || '(none)', cutsTo: 12 },
  { title: 'REQUESTS', cell: ({ requests }) => requests },
  { title: '4XX', cell: ({ clientErrors }) => clientErrors },
  { title: '5XX', cell: ({ serverErrors }) => serverErrors },
];

const refusalColumns: readonly Column<NonNullable<KeyDetail['recentRefusals']>[number]>[] = [
  { title: 'REFUSED IN THE MINUTE (UTC)', cell: ({ at }) => instant(at).slice(0, 16) },
  { title: 'OFFERED', cell: ({ offered }) => offered },
  { title: 'ADMITTED', cell: ({ admitted }) => admitted },
  { title: 'REFUSED BY', cell: refusedInWords, cutsTo: 10 },
];
