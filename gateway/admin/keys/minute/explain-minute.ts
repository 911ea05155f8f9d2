import type { CountedRefusal } from '../../../capabilities/interfaces/words.ts';
import { countedRefusals } from '../../../capabilities/lists/words.js';
import { durationText, timeText } from '../../../fleet/wording.ts';
import { toLimits } from '../../../keys/limits/limit-fields.ts';
import { perLimit } from '../../../keys/limits/limit-texts.ts';
import {
  calendarStartMs,
  calendarWindowsMs,
  windowIndex,
  windowStartMs,
} from '../../../shared/calendar-windows.ts';
import { maxOf } from '../../../shared/limits.ts';
import { type Key, type Limits, type PlanWindow, planWindows } from '../../../shared/model.ts';
import { isoOf, type Period } from '../../../shared/schema/dates-and-durations.ts';
import { counted, figure, listOf, minuteMs } from '../../../shared/words/figures.js';
import { groupIn, windowIn } from '../../../shared/words/limit-names.js';
import type { OperationHour, RefusedCalls } from '../../../usage/read/operations-reader.ts';
import type { TrialUsage } from '../../../usage/read/trial-reader.ts';
import type { RefusedNetwork, SecretUse, UsageMinute } from '../../../usage/read/usage-reader.ts';
import { rowOf } from '../../../usage/read/usage-rows.ts';
import { offeredOf, refusedByLimit, sumOf, type Tally } from '../../../usage/tally.ts';
import { trialSentence } from '../../plans/trial-figures.ts';
import type { LimitsSteps } from '../../wires/keys/usage.ts';
import type { WhyMinute } from '../../wires/keys/why.ts';
import type { SecretView } from '../key-sources.ts';

/** A ban of the key. `isLifted` is true if an operator ended the ban before its time. Times are in epoch ms. */
export interface PastBan extends Period {
  readonly isLifted: boolean;
  /** The operator who made the ban; undefined for a ban after refusals. */
  readonly by?: string | undefined;
}

/** An outage of Redis, or of one server of a Redis Cluster. */
export interface PastOutage extends Period {
  readonly server?: string | undefined;
}

/** The recorded facts about a minute and about the hour of UTC that contains it. */
export interface MinuteFacts {
  readonly key: Pick<Key, 'id' | 'concurrent' | 'operations'>;
  /** The beginning of the minute, epoch ms. */
  readonly atMs: number;
  readonly nowMs: number;
  /** Whether the limits count requests or units (`countedBy`). */
  readonly counted: 'request' | 'unit';
  /** The minutes with requests of the hour. */
  readonly minutesOfHour: readonly UsageMinute[];
  /** Whether the minutes may lack requests, because Redis is away. */
  readonly lacksRequests: boolean;
  /** The limits from some time before the minute on, the oldest first. */
  readonly limits: LimitsSteps;
  /** The bans and the outages of Redis that overlap the minute. */
  readonly bans: readonly PastBan[];
  readonly outages: readonly PastOutage[];
  /** Whether the processes count requests on their own while Redis is away (`redis.onFailure`). */
  readonly countsAlone: boolean;
  readonly secrets: readonly SecretView[];
  /** The use of each secret on the day of the minute. */
  readonly secretsOfDay: ReadonlyMap<string, SecretUse>;
  /** Why the key itself was not valid, such as "the key was revoked at 13:50:00 UTC". */
  readonly disabledBecause: string | undefined;
  readonly networksOfHour: readonly RefusedNetwork[];
  /** The calls of the hour by operation. `remark` says what applies to the operation, such as "removed". */
  readonly operationsOfHour: readonly (Pick<OperationHour, 'operationId' | 'clientErrors'> & {
    readonly remark?: string | undefined;
  })[];
  readonly refusalsOfHour: readonly RefusedCalls[];
  /** The units of failed requests in the minute, by upstream. */
  readonly failed: readonly { readonly upstream: string; readonly units: number }[];
  /** The present trial of the key's plan, with its decisions in the minute. */
  readonly trial: { readonly limits: Limits; readonly usage: TrialUsage } | undefined;
}

type Refusal = WhyMinute['refusals'][number];

/** Other processes send their counts at most this long after a request. */
const countsLateMs = minuteMs;

/** Explains which requests of a key were refused in a minute, with a sentence for each kind of refusal. */
export function explainMinute(facts: MinuteFacts): WhyMinute {
  const minute = facts.minutesOfHour.find(({ atMs }) => atMs === facts.atMs);
  const refusals = [
    ...(minute === undefined ? [] : refusalsOfMinute(facts, minute)),
    ...refusalsOfHour(facts),
  ];
  return {
    at: isoOf(facts.atMs),
    sentence: summary(facts, minute),
    usage: minute && rowOf(minute),
    refusals,
    notes: notesOn(facts),
  };
}

function summary(facts: MinuteFacts, minute: UsageMinute | undefined): string {
  const {
    key: { id },
    atMs,
    nowMs,
  } = facts;
  const soFar = atMs + minuteMs > nowMs ? ', so far' : '';
  const when = `in the minute from ${timeText(atMs, nowMs)}${soFar}`;
  const offered = minute === undefined ? 0 : offeredOf(minute.tally);
  const admitted = minute?.tally.admitted ?? 0;
  const { unauthorized = 0 } = minute ?? {};
  // A request with an invalid secret, or from an address that the key does not allow, does not reach the limits.
  const invalid =
    unauthorized === 0
      ? ''
      : ` ${counted(unauthorized, 'request')} with an invalid secret of the key ${were(unauthorized)} refused with 401 or 429.`;
  if (offered === 0 && facts.lacksRequests)
    return `Redis is away, and this gateway knows no request that reached the limits of ${id} ${when}.${invalid}`;
  if (offered === 0) return `No request that reached the limits of ${id} is recorded ${when}.${invalid}`;
  const reached = unauthorized === 0 ? '' : ' with a valid secret';
  const sent = `${id} sent ${counted(offered, 'request')}${reached} ${when}`;
  const alone = facts.countsAlone
    ? facts.outages.map((outage) => ` ${outageSentence(outage, atMs, admitted)}`).join('')
    : '';
  if (admitted === offered)
    return `${sent}. The limits admitted ${offered === 1 ? 'it' : 'all of them'}.${invalid}${alone}`;
  return `${sent}. ${figure(admitted)} ${admitted === 1 ? 'was' : 'were'} admitted, and ${figure(offered - admitted)} refused.${invalid}${alone}`;
}

/** @param admitted the admitted requests of the minute. Without one, no limit was exceeded */
function outageSentence({ server, fromMs, toMs }: PastOutage, atMs: number, admitted: number): string {
  const [what, whose] =
    server === undefined ? ['Redis', ''] : [`The Redis server ${server}`, ' of the keys on this server'];
  const away =
    toMs - fromMs < 1_000
      ? `for ${durationText(toMs - fromMs)} at ${timeText(fromMs, atMs)}`
      : `from ${timeText(fromMs, atMs)} until ${timeText(toMs, atMs)}`;
  const effect = admitted === 0 ? '' : ', so more than a limit may have been admitted';
  return `${what} was away ${away}: each process counted the requests${whose} on its own${effect}.`;
}

function refusalsOfMinute(facts: MinuteFacts, { tally, unauthorized = 0 }: UsageMinute): Refusal[] {
  const byLimit = Object.entries(refusedByLimit(tally)).map(([by, requests]) => {
    return { by, requests, because: limitReason(by, facts) };
  });
  const kinds = [
    ...byLimit,
    { by: 'banned', requests: tally.banned, because: banReason(facts) },
    { by: 'undecided', requests: tally.undecided, because: outageReason(facts) },
    { by: 'unauthorized', requests: unauthorized, because: secretReason(facts) },
  ];
  return kinds
    .filter(({ requests }) => requests > 0)
    .sort((a, b) => b.requests - a.requests)
    .map(({ by, requests, because }) => {
      const sentence = `${counted(requests, 'request was', 'requests were')} refused ${because}`;
      return { by, requests, per: 'minute', sentence };
    });
}

/** @param by the name of a limit in `refusedByLimit` */
function limitReason(by: string, facts: MinuteFacts): string {
  if (by === 'concurrent') {
    const { concurrent } = facts.key;
    const now =
      concurrent === undefined ? 'The key has no such limit now' : `It is ${figure(concurrent)} now`;
    return `with 429 by the limit of concurrent requests. ${now}; earlier values are not recorded.`;
  }
  if (by === 'group')
    return 'with 429 by a limit of a group of operations. The key has no group now that has recorded these requests.';
  const { group, window } = { group: groupIn(by), window: windowIn(by) as PlanWindow };
  const steps = stepsOf({ window, group }, facts);
  const [first, ...later] = steps;
  if (first === undefined)
    return `with 429 by the ${window} limit${group === undefined ? '' : ` of the group ${group}`}. Its value at that time is not recorded.${resetText(window, facts)}`;
  const per = `${facts.counted === 'unit' ? 'units ' : ''}${perLimit({ window, group })}`;
  const since = first.sinceMs === undefined ? '' : `, in force since ${timeText(first.sinceMs, facts.atMs)}`;
  const changes = later.map(
    ({ max, sinceMs }) =>
      ` At ${timeText(sinceMs ?? facts.atMs, facts.atMs)} the limit ${max === undefined ? 'ended' : `became ${figure(max)}`}.`,
  );
  // If the minute had several limits, the record does not say which of them refused a request.
  const limit = later.every(({ max }) => max === undefined)
    ? `of ${figure(first.max)} ${per}${since}.${changes.join('')}`
    : `${per}. It was ${figure(first.max)} at the beginning of the minute${since}.${changes.join('')}`;
  return `with 429 by the limit ${limit}${resetText(window, facts)}`;
}

interface LimitStep {
  readonly max: number | undefined;
  /** The time of the change that set this value, epoch ms; undefined if the value applied from the beginning. */
  readonly sinceMs: number | undefined;
}

/** Returns the values of a limit in the minute. The first value is known. */
function stepsOf(
  limit: { readonly window: PlanWindow; readonly group: string | undefined },
  { limits, atMs }: MinuteFacts,
): readonly LimitStep[] {
  const all = limits.map(({ fromAt, limits }) => ({
    fromMs: Date.parse(fromAt),
    max: maxOf(toLimits(limits), limit),
  }));
  const steps = all
    .filter(({ max }, index) => index === 0 || max !== all[index - 1]?.max)
    .map(({ fromMs, max }, index) => ({ fromMs, max, sinceMs: index === 0 ? undefined : fromMs }))
    .filter(
      ({ fromMs }, index, of) => fromMs < atMs + minuteMs && (of[index + 1]?.fromMs ?? Infinity) > atMs,
    );
  const first = steps.findIndex(({ max }) => max !== undefined);
  return first === -1 ? [] : steps.slice(first);
}

/** States when a window that is longer than a minute started over. */
function resetText(window: PlanWindow, { atMs, nowMs }: MinuteFacts): string {
  if (planWindows.indexOf(window) <= planWindows.indexOf('minute')) return '';
  const lengthMs = calendarWindowsMs[window];
  const endMs = windowStartMs(lengthMs, windowIndex(lengthMs, atMs) + 1);
  return ` Its count ${endMs > nowMs ? 'starts' : 'started'} over at ${timeText(endMs, atMs)}.`;
}

function banReason({ bans, atMs, nowMs }: MinuteFacts): string {
  const [first, ...others] = bans.map(({ fromMs, toMs, isLifted, by }) => {
    const end = isLifted ? ', which an operator lifted at' : toMs > nowMs ? ', which ends at' : ' until';
    return `a ban${by === undefined ? '' : ` by ${by}`} from ${timeText(fromMs, atMs)}${end} ${timeText(toMs, atMs)}`;
  });
  const rule = bans.every(({ by }) => by !== undefined)
    ? ''
    : ' A key is banned when it keeps sending after refusals.';
  if (first === undefined)
    return 'with 429 by a ban. The list of events does not have its beginning and its end.';
  return `with 429 by ${[first, ...others].join(', and by ')}.${rule}`;
}

function outageReason({ outages, atMs }: MinuteFacts): string {
  const [outage] = outages;
  const when =
    outage === undefined
      ? 'was away'
      : `was away from ${timeText(outage.fromMs, atMs)} until ${timeText(outage.toMs, atMs)}`;
  return `with 503, because Redis ${when} and \`redis.onFailure\` was \`refuse\`.`;
}

/** The record does not state which of the secrets was presented in which minute, only on which day. */
function secretReason({ atMs, secrets, secretsOfDay, disabledBecause }: MinuteFacts): string {
  const used = secrets.flatMap(({ digestStart, expiresMs, leak }) => {
    if ((secretsOfDay.get(digestStart)?.unauthorized ?? 0) === 0) return [];
    if (expiresMs >= atMs + minuteMs) return `${digestStart}…`;
    const end = leak?.ended ? 'ended, because it had leaked,' : 'expired';
    return `${digestStart}…, which ${end} at ${timeText(expiresMs, atMs)}`;
  });
  const presented = used.length === 0 ? '' : ` Such requests of this day presented ${used.join('; and ')}.`;
  const because = disabledBecause === undefined ? '' : ` ${disabledBecause}.`;
  return `with 401, because their secret was not valid, or with 429 if their address had sent too many such requests.${because}${presented}`;
}

function refusalsOfHour(facts: MinuteFacts): Refusal[] {
  const { networksOfHour, refusalsOfHour: byCapabilities } = facts;
  const inHour = `in the hour from ${timeText(calendarStartMs('hour', facts.atMs), facts.nowMs)}`;
  const fromNetworks = sum(networksOfHour.map(({ requests }) => requests));
  const networks = networksOfHour.map(({ network, requests }) => {
    return `${figure(requests)} from ${network === '*' ? 'other networks' : network}`;
  });
  const all: readonly CountedRefusal[] = countedRefusals;
  const kinds = [
    {
      by: 'address',
      requests: fromNetworks,
      sentence: `${counted(fromNetworks, 'request')} with a valid secret ${were(fromNetworks)} refused ${inHour} with 403, because the key did not allow the address of the client: ${listOf(networks)}. They are recorded by hour only.`,
    },
    ...all.map(({ name, title }) => {
      const calls = byCapabilities.filter((one) => one.name === name);
      const requests = sum(calls.map((one) => one.requests));
      const operations = calls.map((one) => `${nameOf(one.operationId)} ${figure(one.requests)}`);
      const sentence = `${title} refused ${counted(requests, 'admitted request')} ${inHour}: ${listOf(operations)}. They are recorded by hour only.`;
      return { by: name, requests, sentence };
    }),
    otherErrors(facts, inHour),
  ];
  return kinds.filter(({ requests }) => requests > 0).map((one) => ({ ...one, per: 'hour' }));
}

/**
 * Describes the 4xx responses to admitted requests, such as 403 for an operation that the key may not call. The record
 * has them by operation and hour, together with the refusals of limits.
 */
function otherErrors(
  { minutesOfHour, operationsOfHour, refusalsOfHour: byCapabilities }: MinuteFacts,
  inHour: string,
) {
  const failing = operationsOfHour.filter(({ clientErrors }) => clientErrors > 0);
  const tally = sumOf(minutesOfHour.map((minute) => minute.tally));
  const known = refusedWith429(tally) + sum(byCapabilities.map(({ requests }) => requests));
  const requests = Math.max(0, sum(failing.map(({ clientErrors }) => clientErrors)) - known);
  const operations = failing.map(
    ({ operationId, clientErrors, remark }) =>
      `${nameOf(operationId)} ${figure(clientErrors)}${remark === undefined ? '' : ` (${remark})`}`,
  );
  const included = known > 0 ? ', with the refusals of limits and capabilities' : '';
  const sentence = `${counted(requests, 'admitted request')} got another 4xx ${inHour}: the gateway or the upstream refused the request, or the client went away. The record does not say which. The 4xx of the hour${included}: ${listOf(operations)}.`;
  return { by: 'other', requests, sentence };
}

function refusedWith429(tally: Tally): number {
  return offeredOf(tally) - tally.admitted - tally.undecided;
}

function notesOn({ atMs, nowMs, counted: unit, failed, trial }: MinuteFacts): string[] {
  const units = sum(failed.map((one) => one.units));
  const upstreams = failed.map(
    (one) => `${one.upstream === '*' ? 'other' : one.upstream} ${figure(one.units)}`,
  );
  const what =
    unit === 'unit'
      ? `Admitted requests of ${counted(units, 'unit')} failed`
      : `${counted(units, 'admitted request')} failed`;
  return [
    ...(units === 0
      ? []
      : [
          `${what}: they ended with 5xx or were cut by the gateway or an upstream. By upstream: ${upstreams.join(', ')}.`,
        ]),
    ...(trial === undefined || trial.usage.requests === 0 ? [] : [trialSentence(trial.limits, trial.usage)]),
    ...(nowMs < atMs + minuteMs + countsLateMs
      ? ['Other processes may still send counts of this minute.']
      : []),
  ];
}

function nameOf(operationId: string): string {
  return operationId === '' ? 'no operation' : operationId === '*' ? 'other operations' : operationId;
}

function were(requests: number): string {
  return requests === 1 ? 'was' : 'were';
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
