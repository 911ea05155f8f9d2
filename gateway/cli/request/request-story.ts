import { errors } from '../../shared/errors.ts';
import { counted, figure, milliseconds } from '../../shared/words/figures.js';
import { windowText } from '../../shared/words/limit-names.js';
import type { LogEntry } from './log-lines.ts';

/**
 * Describes a request in sentences that an operator can forward. The sentences contain the request and its response, the decision
 * about its limits, and the cause of a failure.
 *
 * @param entry its access line
 * @param events further entries of the log about it
 */
export function requestStory(entry: LogEntry, events: readonly LogEntry[]): string {
  const bug = events.find(({ msg }) => typeof msg === 'string');
  const reasons = [limitReason(entry) ?? errorReason(entry), faultReason(entry), trialReason(entry)].filter(
    (reason) => reason !== undefined,
  );
  const sentences = [
    `${whatItWas(entry)} ${howItEnded(entry)}.`,
    ...(reasons.length === 0 ? [] : [`${capitalized(reasons.join('; '))}.`]),
    ...(bug === undefined ? [] : [`The log also says: ${text(bug.msg)}.`]),
  ];
  return sentences.join(' ');
}

function whatItWas({ method, path, operation, keyId, plan, address, time }: LogEntry): string {
  const request = [method, path].filter((part) => part !== undefined).join(' ');
  const shown = request === '' ? 'A request that could not be read' : request;
  const ofOperation = operation === undefined || operation === '' ? '' : ` (${operation})`;
  // The access line contains a plan only if the secret is valid.
  const by = plan === undefined ? `from ${address}` : `of ${keyId} (${plan}) from ${address}`;
  return `${shown}${ofOperation} ${by}, on ${text(time).slice(0, 10)} at ${text(time).slice(11, 23)} UTC,`;
}

function howItEnded(entry: LogEntry): string {
  const { status, error, target, attempts, totalMs, upstreamMs } = entry;
  const took = `after ${milliseconds(Number(totalMs))} ms`;
  const atUpstream =
    upstreamMs === undefined
      ? ''
      : `, of which ${milliseconds(Number(upstreamMs))} ms passed at the upstream`;
  const tries = typeof attempts === 'number' && attempts > 1 ? `, at attempt ${attempts}` : '';
  const sentTo = target === undefined ? '' : ` (sent to ${target}${tries})`;
  if (status === 499)
    return `ended before its response was complete, because the client went away first, ${took}${sentTo}`;
  // The access line of a WebSocket is written at the handshake.
  if (status === 101) return `became a WebSocket to ${target ?? 'the upstream'} ${took}`;
  // After an error in the middle of a response, `status` is the status of the response and not of the error.
  if (error !== undefined && target !== undefined && (errorOf(error)?.status ?? status) !== status)
    return `was answered ${status} by ${target}${tries}, and that was cut off (${error}) ${took}${atUpstream}`;
  if (error !== undefined)
    return `was answered ${status} (${error}) by the gateway ${took}${atUpstream}${sentTo}`;
  if (target === undefined) return `was answered ${status} by the gateway itself ${took}`;
  return `was answered ${status} by ${target}${tries} ${took}${atUpstream}`;
}

/** Descriptions of limits that are not part of a key's quota, by window name. */
const buckets: Readonly<Record<string, string>> = {
  address: 'requests from one address without a valid key',
  preflight: 'CORS preflights from one address',
  docs: 'requests from one address for the API reference',
  limits: 'requests of one key for its own limits',
};

function limitReason(entry: LogEntry): string | undefined {
  const { decision, source, window, limit, remaining, units, keyStatus, keyId, secret } = entry;
  const bucket = buckets[text(window)];
  const alone =
    source === 'local' ? ', by the counts of this process alone, because Redis was unavailable' : '';
  if (bucket !== undefined && decision === 'refused') {
    return `all ${figure(Number(limit))} ${bucket} in this minute were used${alone}`;
  }
  switch (keyStatus) {
    case 'unknown':
      return `its secret, with a SHA-256 that begins with ${secret}, belongs to no key`;
    case 'expired':
      return `its secret ${secret} of the key ${keyId} had expired`;
    case 'disabled':
      return `its key ${keyId} is disabled`;
    case 'no_plan':
      return `its key ${keyId} is on a plan that the configuration did not have`;
    case 'address_not_allowed':
      return `its key ${keyId} does not allow the address of the client`;
  }
  switch (decision) {
    case 'admitted':
      return units === undefined
        ? `it was admitted, and left ${figure(Number(remaining))} of the ${figure(Number(limit))} requests of this ${windowText(text(window))}${alone}`
        : `it was admitted at ${counted(Number(units), 'unit')}, and left ${figure(Number(remaining))} of the ${figure(Number(limit))} units of this ${windowText(text(window))}${alone}`;
    case 'refused':
      return units === undefined
        ? `the key had used all ${figure(Number(limit))} requests of this ${windowText(text(window))}${alone}`
        : `it costs ${counted(Number(units), 'unit')}, and the key had ${figure(Number(remaining))} of the ${figure(Number(limit))} units of this ${windowText(text(window))} left${alone}`;
    case 'banned':
      return `the key was banned, because it had kept sending after it was refused${alone}`;
    case 'crowded':
      return `the key's requests in progress had reached its \`concurrent\` limit${alone}`;
    case 'unavailable':
      return 'Redis was away, and redis.onFailure is refuse';
    default:
      return undefined;
  }
}

/** Returns the message of the error without its advice. */
function errorReason({ error }: LogEntry): string | undefined {
  return errorOf(error)?.message.replace(/[;:].*|\.$/s, '');
}

/** Returns undefined for an unknown code, because another version may have written the line. */
function errorOf(code: unknown): (typeof errors)[keyof typeof errors] | undefined {
  return Object.entries(errors).find(([known]) => known === code)?.[1];
}

function faultReason({ fault, cause }: LogEntry): string | undefined {
  const because = cause === undefined ? '' : `: ${text(cause)}`;
  switch (fault) {
    case 'client':
      return `the client must act${because}`;
    case 'gateway':
    case 'upstream':
      return `the fault is the ${fault}'s${because}`;
    default:
      return undefined;
  }
}

function trialReason({ trial, decision }: LogEntry): string | undefined {
  if (trial === undefined) return undefined;
  const by = trial === 'banned' ? 'a ban' : `its ${text(trial)} limit`;
  const too = decision === 'admitted' ? '' : ' too';
  return `the trial of the plan would have refused the request${too}, by ${by}`;
}

function capitalized(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

function text(value: unknown): string {
  return value === undefined ? '' : String(value);
}
