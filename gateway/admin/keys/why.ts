import { ordinal, timeText } from '../../fleet/wording.ts';
import { perLimit } from '../../keys/limits/limit-texts.ts';
import { calendarStartMs } from '../../shared/calendar-windows.ts';
import { maxOf } from '../../shared/limits.ts';
import type { Key, KeyStatus, PlanWindow, Window } from '../../shared/model.ts';
import { isoOf } from '../../shared/schema/dates-and-durations.ts';
import type { KeyState } from '../../shared/schema/query-words.ts';
import { beginning, counted, ending, figure, hourMs, listOf } from '../../shared/words/figures.js';
import { groupIn, limitsInWords, policyName, windowIn, windowText } from '../../shared/words/limit-names.js';
import type { OperationHour } from '../../usage/read/operations-reader.ts';
import {
  type AddressesOfDay,
  type RefusedNetwork,
  type UsageMinute,
  unauthorizedIn,
} from '../../usage/read/usage-reader.ts';
import { differingUnits, offeredOf, refusedByLimit, sumOf, type Tally, unitsOf } from '../../usage/tally.ts';
import { lacksData } from '../api/missing-data.ts';
import type { KeyDetail } from '../wires/keys/key.ts';
import type { Why } from '../wires/keys/why.ts';
import { spentWindows } from '../words/keys.js';
import type { ListedKey } from './find-keys.ts';
import { fixedState } from './key-item.ts';
import type { SecretView } from './key-sources.ts';
import { type Uncounted, uncountedText } from './over-time/limit-beginnings.ts';

export interface WhyFacts extends Pick<ListedKey, 'key' | 'source' | 'secrets'> {
  readonly state: KeyState;
  readonly status: KeyStatus;
  /** Whether the limits count requests or units (`countedBy`). */
  readonly counted: 'request' | 'unit';
  /** Usage of the last 24 hours; absent without a usage record. */
  readonly recorded?:
    | {
        readonly minutes: readonly UsageMinute[];
        /** The operations that the key called in the last 24 hours, by hour. */
        readonly operations: readonly OperationHour[];
        readonly addresses: readonly AddressesOfDay[];
        readonly refusedNetworks: readonly RefusedNetwork[];
        readonly keptDays: number;
      }
    | undefined;
  readonly nowMs: number;
  /** The later plans and limits of the key, the earliest first. */
  readonly later: NonNullable<KeyDetail['upcoming']>;
  /** The limits that the key did not have during the whole present window. */
  readonly begun: ReadonlyMap<PlanWindow, Uncounted>;
}

/** Explains, as a sentence and as data, why requests of a key are admitted or refused. */
export function why(facts: WhyFacts): Why {
  const { recorded } = facts;
  const present = [nowSentence(facts), ...facts.later.map((terms) => laterSentence(terms, facts.key.plan))];
  if (recorded === undefined) return { sentence: present.join(' ') };
  const { minutes, operations, addresses, refusedNetworks } = recorded;
  const tally = sumOf(minutes.map((minute) => minute.tally));
  const refusing = minutes.filter((minute) => refusals(minute.tally) > 0);
  const [first] = refusing;
  const thisHour = byOperation(
    operations.filter(({ atMs }) => atMs >= calendarStartMs('hour', facts.nowMs)),
    ({ requests }) => requests,
  );
  const addressesToday = addresses.at(-1)?.about;
  const sentences = [
    ...present,
    ...[...facts.begun].map(([window, uncounted]) => uncountedSentence(window, uncounted, facts.nowMs)),
    daySentence(facts, tally, refusing),
    failuresSentence(operations, facts.nowMs),
    unauthorizedSentence(facts, minutes),
    networksSentence(refusedNetworks, facts.nowMs),
    hourSentence(thisHour, addressesToday),
  ];
  return {
    sentence: sentences.filter((sentence) => sentence !== '').join(' '),
    last24h: {
      offered: offeredOf(tally),
      admitted: tally.admitted,
      units: differingUnits({ admitted: tally.admitted, units: unitsOf(tally) }),
      refused: refusedByLimit(tally),
      banned: tally.banned,
      minutesRefused: refusing.length,
      firstRefusedAt: first && isoOf(first.atMs),
      unauthorized: unauthorizedIn(minutes),
      refusedNetworks:
        refusedNetworks.length === 0
          ? undefined
          : refusedNetworks.map(({ lastMs, ...refused }) => ({ ...refused, lastAt: isoOf(lastMs) })),
    },
    operationsThisHour: thisHour,
    addressesToday,
  };
}

function refusals(tally: Tally): number {
  return offeredOf(tally) - tally.admitted;
}

function nowSentence(facts: WhyFacts): string {
  const { key, source, state, status, secrets, recorded, nowMs } = facts;
  const name = `${key.id} (${key.plan})`;
  const { rateLimit, banLevel } = status;
  switch (fixedState(key, secrets, nowMs)) {
    case 'disabled':
      return `${name} ${disabledBecause(key, source)}: each of its requests is refused.`;
    case 'no_secret':
      return `${name} has no secret: no client can use it.`;
    case 'expired':
      return expiredSentence(name, secrets);
    case undefined:
  }
  const grant = grantText(facts);
  if (status.isUnknown) {
    const [before, whose] = grant === undefined ? ['', name] : [`${name} ${grant} `, 'it'];
    return `${before}What ${whose} has used is not known, because Redis is away.`;
  }
  // If the text begins with a sentence about the grant, the next sentence begins with "It" and not with the key's name.
  const who = grant === undefined ? name : `${name} ${grant} It`;
  if (rateLimit.ban !== undefined) {
    const { byHand } = rateLimit.ban;
    if (byHand) {
      const because = byHand.reason === undefined ? '' : `: ${byHand.reason}`;
      return `${who} is banned by an operator until ${ending(rateLimit.ban.untilMs)}${because}.${alsoUsed(facts)}`;
    }
    const nth = banLevel > 1 ? `, for the ${ordinal(banLevel)} time in a row` : '';
    return `${who} is banned until ${timeText(rateLimit.ban.untilMs, nowMs)}${nth}, because it kept sending after it had been refused.${alsoUsed(facts)}`;
  }
  if (state === 'unused') {
    const days = recorded === undefined || recorded.keptDays === 1 ? 'day' : `${recorded.keptDays} days`;
    const since = recorded === undefined ? '' : ` in the last ${days}`;
    return `${who} has sent no request${since}.`;
  }
  return limitsSentence(who, facts);
}

function laterSentence({ fromAt, plan, limits }: WhyFacts['later'][number], present: string): string {
  const what = plan === present ? 'its limits will be' : `it will be on the plan ${plan}:`;
  return `From ${beginning(Date.parse(fromAt))} ${what} ${limitsInWords(limits)}.`;
}

function uncountedSentence(window: PlanWindow, uncounted: Uncounted, nowMs: number): string {
  const setAt = (atMs: number) => `at ${minuteOf(atMs, nowMs)}`;
  return uncountedText(`Its limit a ${window}`, { window, ...uncounted }, setAt, nowMs);
}

/** Returns the used-up window of the whole key and of each group that starts over last. */
function spentByGroup({ status }: WhyFacts): ReadonlyMap<string | undefined, Window> {
  const spent = spentWindows(status.rateLimit).toSorted((a, b) => a.resetMs - b.resetMs);
  return new Map(spent.map((window) => [window.group, window]));
}

function allOf({ name, group, limit }: Window, { counted: unit }: WhyFacts): string {
  return `all ${counted(limit, unit)} of this ${windowText(policyName(name, group))}`;
}

function textsOf(windows: Iterable<Window>, facts: WhyFacts): string[] {
  return [...windows].map(
    (window) => `${allOf(window, facts)}, which starts over at ${timeText(window.resetMs, facts.nowMs)}`,
  );
}

/** States the limits that still refuse requests of the key when its ban ends. */
function alsoUsed(facts: WhyFacts): string {
  const used = textsOf(spentByGroup(facts).values(), facts);
  return used.length === 0 ? '' : ` It has also used ${listOf(used)}.`;
}

/** States the used-up windows and, if the key may call, the use of the other windows. */
function limitsSentence(who: string, facts: WhyFacts): string {
  const { status, counted: unit, nowMs } = facts;
  const { windows } = status.rateLimit;
  const spent = spentByGroup(facts);
  const inForce = spent.get(undefined);
  const ofGroups = textsOf(
    [...spent.values()].filter(({ group }) => group !== undefined),
    facts,
  );
  if (inForce !== undefined) {
    const groupsToo = ofGroups.length === 0 ? '' : ` It has also used ${listOf(ofGroups)}.`;
    return `${who} has used ${allOf(inForce, facts)} and may call again at ${timeText(status.retryAtMs, nowMs)}.${groupsToo}`;
  }
  const used = windows.flatMap(({ name, group, limit }, index) =>
    spent.has(group)
      ? []
      : `${figure(status.used[index] ?? 0)} of ${figure(limit)}${unit === 'unit' ? ' units' : ''} of this ${windowText(policyName(name, group))}`,
  );
  return ofGroups.length === 0
    ? `${who} may call: it has used ${listOf(used)}.`
    : `${who} has used ${listOf(ofGroups)}. It may call other operations: it has used ${listOf(used)}.`;
}

/**
 * Returns a text such as "has a grant until 2026-11-25 18:00 UTC: 5,000 a day in place of 1,000." Before the grant begins,
 * the text is "will have a grant from … until …". The text is undefined when the grant changes no limit of the key.
 */
function grantText({ key, status: { grant } }: WhyFacts): string | undefined {
  if (grant === undefined) return undefined;
  const parts = key.limits.flatMap((limit) => {
    const granted = maxOf(grant.limits, limit);
    return granted === undefined
      ? []
      : [`${figure(granted)} ${perLimit(limit)} in place of ${figure(limit.max)}`];
  });
  if (parts.length === 0) return undefined;
  const from =
    grant.fromMs === undefined ? 'has a grant' : `will have a grant from ${beginning(grant.fromMs)}`;
  return `${from} until ${ending(grant.untilMs)}: ${listOf(parts)}.`;
}

function disabledBecause({ disabled }: Key, source: ListedKey['source']): string {
  if (!disabled) return 'has no limits in the configuration';
  return source === 'file' ? 'is disabled in the configuration' : 'is revoked';
}

function expiredSentence(who: string, secrets: readonly SecretView[]): string {
  const lastMs = Math.max(...secrets.map(({ expiresMs }) => expiresMs));
  const leak = secrets.find((secret) => secret.leak?.ended && secret.expiresMs === lastMs)?.leak;
  if (leak !== undefined) {
    const found =
      leak.ancestor === undefined ? 'it' : `the secret ${leak.ancestor}… from which it was issued`;
    return `The last secret of ${who} ended on ${dayOf(lastMs)} at ${clockOf(lastMs)} UTC, because ${found} was found where everyone can read it: each of its requests is refused until it has a new secret.`;
  }
  return `The last secret of ${who} expired on ${dayOf(lastMs)} at ${clockOf(lastMs)} UTC: each of its requests is refused until it has a new secret.`;
}

function daySentence(facts: WhyFacts, tally: Tally, refusing: readonly UsageMinute[]): string {
  const { state, nowMs } = facts;
  const offered = offeredOf(tally);
  if (offered === 0) {
    // For a key without a valid secret, `unauthorizedSentence` describes the requests.
    if (state === 'unused' || isWithoutSecret(facts) || facts.status.isUnknown) return '';
    return hasCalledToday(facts)
      ? 'Its requests are not recorded yet; recording takes up to a minute.'
      : 'In the last 24 h it sent no request.';
  }
  const [first] = refusing;
  if (first === undefined) {
    if (lacksData())
      return `This gateway knows ${counted(offered, 'request')} of the last 24 h, and no refusal; Redis is away.`;
    const all = offered === 1 ? 'its one request was not' : `none of its ${figure(offered)} requests was`;
    return isWithoutSecret(facts)
      ? `While it was valid, ${all} refused in the last 24 h.`
      : `In the last 24 h ${all} refused.`;
  }
  const by = [
    ...Object.entries(refusedByLimit(tally)).map(([name, refused]) => ({
      who: limitText(name),
      refused,
    })),
    { who: 'a ban', refused: tally.banned },
    { who: 'an outage of Redis', refused: tally.undecided },
  ]
    .filter(({ refused }) => refused > 0)
    .sort((a, b) => b.refused - a.refused);
  const parts = by.map(({ who, refused }, index) =>
    index === 0 ? `${who} refused ${figure(refused)}` : `${who} ${figure(refused)}`,
  );
  const minutes = `in ${counted(refusing.length, 'minute')}`;
  const period = lacksData()
    ? 'As far as this gateway knows without Redis, in the last 24 h'
    : 'In the last 24 h';
  return `${period} ${listOf(parts)} of its ${counted(offered, 'request')}, ${minutes}, first at ${minuteOf(first.atMs, nowMs)}.`;
}

/**
 * Describes the responses with 5xx. The record has them by hour, so the share is of the requests from the first to the last
 * hour with such a response.
 */
function failuresSentence(operations: readonly OperationHour[], nowMs: number): string {
  const failing = operations.filter(({ serverErrors }) => serverErrors > 0);
  const [most] = byOperation(failing, ({ serverErrors }) => serverErrors);
  if (most === undefined) return '';
  const hours = failing.map(({ atMs }) => atMs);
  const [fromMs, toMs] = [Math.min(...hours), Math.max(...hours) + hourMs];
  const requests = operations
    .filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
    .reduce((sum, { requests }) => sum + requests, 0);
  const failed = failing.reduce((sum, { serverErrors }) => sum + serverErrors, 0);
  const when =
    toMs > nowMs
      ? `since ${minuteOf(fromMs, nowMs)}`
      : `between ${minuteOf(fromMs, nowMs)} and ${minuteOf(toMs, nowMs)}`;
  const whose = `${most.requests === failed ? 'all' : figure(most.requests)} of them ${nameOf(most)}`;
  return `In the last 24 h ${counted(failed, 'request')} got 5xx, ${whose}: ${percent(failed / requests)} of its requests ${when}.`;
}

/** @param name a limit of `refusedByLimit` */
function limitText(name: string): string {
  if (name === 'concurrent') return 'the limit of concurrent requests';
  if (name === 'group') return 'a limit of a group';
  const group = groupIn(name);
  return `the ${windowIn(name)} limit${group === undefined ? '' : ` of the group ${group}`}`;
}

/**
 * Describes the requests that presented an invalid secret of the key. After a leak or a rotation, the client addresses
 * of these requests show who still uses an old secret.
 */
function unauthorizedSentence(facts: WhyFacts, minutes: readonly UsageMinute[]): string {
  const requests = unauthorizedIn(minutes);
  const last = minutes.findLast(({ unauthorized = 0 }) => unauthorized > 0);
  if (last === undefined) {
    return isWithoutSecret(facts) && facts.secrets.length > 0 && !facts.status.isUnknown
      ? 'In the last 24 h no request with its secrets got 401.'
      : '';
  }
  const at = minuteOf(last.atMs, facts.nowMs);
  return isWithoutSecret(facts)
    ? `In the last 24 h ${counted(requests, 'request')} used its secrets and got 401, or 429 after too many from their address, last at ${at}.`
    : `In the last 24 h ${counted(requests, 'request')} presented an invalid secret of the key, last at ${at}.`;
}

const networksNamedMax = 3;

/**
 * Describes the requests from networks that the key does not allow, and names the largest networks. If the owner of the
 * key does not recognise a network, the secret may have leaked.
 */
function networksSentence(refused: readonly RefusedNetwork[], nowMs: number): string {
  if (refused.length === 0) return '';
  const requests = refused.reduce((sum, network) => sum + network.requests, 0);
  const lastMs = Math.max(...refused.map((network) => network.lastMs));
  const named = refused.filter(({ network }) => network !== '*').slice(0, networksNamedMax);
  const rest = requests - named.reduce((sum, network) => sum + network.requests, 0);
  const parts = [
    ...named.map((one) => `${figure(one.requests)} from ${one.network}`),
    ...(rest > 0 ? [`${figure(rest)} from other networks`] : []),
  ];
  return `In the last 24 h ${counted(requests, 'request')} had a valid secret but came from an address that the key does not allow, last at ${minuteOf(lastMs, nowMs)}: ${listOf(parts)}.`;
}

/** Whether every request of the key is refused, because it has no valid secret or is disabled. */
function isWithoutSecret({ key, secrets, nowMs }: WhyFacts): boolean {
  return fixedState(key, secrets, nowMs) !== undefined;
}

const daySeconds = 86_400;

/**
 * Whether the counts of the windows show that the key sent requests within the last day. These counts include requests
 * to other processes without delay. The usage record includes requests to other processes only some seconds later.
 * Windows longer than a day are ignored, because they may have begun before the last 24 hours.
 */
function hasCalledToday({ status: { rateLimit, used } }: WhyFacts): boolean {
  return rateLimit.windows.some(
    ({ windowSeconds }, index) => windowSeconds <= daySeconds && (used[index] ?? 0) > 0,
  );
}

interface OfOperation {
  readonly operationId: string;
  readonly requests: number;
}

/** Adds up a number of each operation. The operation with the largest sum comes first. */
function byOperation(
  hours: readonly OperationHour[],
  numberOf: (hour: OperationHour) => number,
): readonly OfOperation[] {
  return [...Map.groupBy(hours, ({ operationId }) => operationId)]
    .map(([operationId, itsHours]) => ({
      operationId,
      requests: itsHours.reduce((sum, hour) => sum + numberOf(hour), 0),
    }))
    .sort((a, b) => b.requests - a.requests);
}

function nameOf({ operationId }: OfOperation): string {
  return operationId === '' ? 'for no operation' : operationId;
}

function hourSentence(operations: readonly OfOperation[], addresses: number | undefined): string {
  const all = operations.reduce((sum, { requests }) => sum + requests, 0);
  const [most] = operations;
  const parts = [
    ...(most === undefined ? [] : [`this hour ${percent(most.requests / all)} are ${nameOf(most)}`]),
    ...(addresses === undefined
      ? []
      : [`about ${counted(addresses, 'address', 'addresses')} ${addresses === 1 ? 'uses' : 'use'} it`]),
  ];
  const text = parts.join('; ');
  return text === '' ? '' : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Formats a time to the minute. The time zone is omitted, because an earlier sentence names it. */
function minuteOf(atMs: number, nowMs: number): string {
  const clock = clockOf(atMs).slice(0, 5);
  return dayOf(atMs) === dayOf(nowMs) ? clock : `${clock} on ${dayOf(atMs)}`;
}

function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10);
}

function clockOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 19);
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
