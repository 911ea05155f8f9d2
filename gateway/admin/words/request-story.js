import { catalogue } from '../../shared/words/errors.js';
import { counted, figure, milliseconds, utcSecond } from '../../shared/words/figures.js';
import { windowText } from '../../shared/words/limit-names.js';

/** An entry of the gateway's log. @typedef {Readonly<Record<string, unknown>>} LogEntry */

/**
 * Describes a request in sentences that an operator can forward. The sentences contain the request and its response, the decision
 * about its limits, and the cause of a failure.
 *
 * @param {LogEntry} entry its access line
 * @param {readonly LogEntry[]} events further entries of the log about it
 */
export function requestStory(entry, events) {
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

/** @param {LogEntry} entry */
function whatItWas(entry) {
  const { method, path, operation, keyId, plan, address, time } = entry;
  const request = [method, path].filter((part) => part !== undefined).join(' ');
  const shown = request === '' ? 'A request that could not be read' : request;
  const ofOperation = operation === undefined || operation === '' ? '' : ` (${operation})`;
  // The access line contains a plan only if the secret is valid.
  const whose = plan === undefined ? '' : ` of ${keyId} (${plan})`;
  return `${shown}${ofOperation}${whose} from ${address}${presented(entry)}, on ${text(time).slice(0, 10)} at ${text(time).slice(11, 23)} UTC,`;
}

/** @param {LogEntry} entry */
function howItEnded(entry) {
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

/** Descriptions of limits that are not part of a key's quota, by window name. @type {Readonly<Record<string, string | undefined>>} */
const buckets = {
  address: 'requests from one address without a valid key',
  preflight: 'CORS preflights from one address',
  docs: 'requests from one address for the API reference',
  limits: 'requests of one key for its own limits',
};

/** @param {unknown} secret the first digits of its digest */
function notLookedUp(secret) {
  return `its secret, with a SHA-256 that begins with ${secret}, could not be looked up in Redis`;
}

/** @param {LogEntry} entry @returns {string | undefined} */
function limitReason(entry) {
  const { decision, source, window, limit, remaining, units, keyStatus, keyId, secret } = entry;
  const bucket = buckets[text(window)];
  const alone =
    source === 'local' ? ', by the counts of this process alone, because Redis was unavailable' : '';
  if (bucket !== undefined && decision === 'refused') {
    const full = `all ${figure(Number(limit))} ${bucket} in that minute were used${alone}`;
    return keyStatus === 'unread' ? `${notLookedUp(secret)}, and ${full}` : full;
  }
  switch (keyStatus) {
    case 'unknown':
      return `its secret, with a SHA-256 that begins with ${secret}, belongs to no key`;
    case 'expired':
      return `its secret ${secret} of the key ${keyId} had expired`;
    case 'leaked':
      return `its secret ${secret} of the key ${keyId} had ended, because it was reported as leaked`;
    case 'disabled':
      return `its key ${keyId} is disabled`;
    case 'no_plan':
      return `its key ${keyId} had no limits in the configuration`;
    case 'unread':
      return notLookedUp(secret);
    case 'address_not_allowed':
      return `its key ${keyId} does not allow the address of the client`;
  }
  switch (decision) {
    case 'admitted':
      return units === undefined
        ? `it was admitted, and left ${figure(Number(remaining))} of the ${figure(Number(limit))} requests of that ${windowText(text(window))}${alone}`
        : `it was admitted at ${counted(Number(units), 'unit')}, and left ${figure(Number(remaining))} of the ${figure(Number(limit))} units of that ${windowText(text(window))}${alone}`;
    case 'refused':
      return units === undefined
        ? `the key had used all ${figure(Number(limit))} requests of that ${windowText(text(window))}${alone}`
        : `it costs ${counted(Number(units), 'unit')}, and the key had ${figure(Number(remaining))} of the ${figure(Number(limit))} units of that ${windowText(text(window))} left${alone}`;
    case 'banned':
      return `${banText(entry)}${alone}`;
    case 'crowded':
      return `the key's requests in progress had reached its \`concurrent\` limit${alone}`;
    case 'unavailable':
      return 'Redis was away, and redis.onFailure is refuse';
    default:
      return undefined;
  }
}

/**
 * The end and the cause of a ban. Lines of earlier versions have no end, and no `byHand`.
 *
 * @param {LogEntry} entry
 */
function banText({ bannedUntil, byHand }) {
  const until = bannedUntil === undefined ? '' : ` until ${utcSecond(text(bannedUntil))} UTC`;
  return byHand === true
    ? `the key was banned by an operator${until}`
    : `the key was banned${until}, because it had kept sending after it was refused`;
}

/**
 * The secret of a request that the limit of its address refused, such as " with the secret 021dbb6d… of the key wayne, which is disabled". For
 * other requests, the reason of the refusal names the secret or the key.
 *
 * @param {LogEntry} entry
 */
function presented({ decision, window, keyStatus, keyId, secret }) {
  if (decision !== 'refused' || buckets[text(window)] === undefined || secret === undefined) return '';
  const { is = '', which = '' } = invalid[text(keyStatus)] ?? {};
  return ` with the ${is}secret ${secret}…${keyId === undefined ? '' : ` of the key ${keyId}`}${which}`;
}

/**
 * What is wrong with a secret or its key, by `keyStatus`.
 *
 * @type {Readonly<Record<string, { readonly is?: string, readonly which?: string } | undefined>>}
 */
const invalid = {
  unknown: { which: ', which belongs to no key' },
  expired: { is: 'expired ' },
  leaked: { is: 'leaked ' },
  disabled: { which: ', which is disabled' },
  no_plan: { which: ', which had no limits in the configuration' },
  address_not_allowed: { which: ', which does not allow this address' },
};

/** Returns the message of the error without its advice. @param {LogEntry} entry */
function errorReason({ error }) {
  return errorOf(error)?.message.replace(/[;:].*|\.$/s, '');
}

/** Returns undefined for an unknown code, because another version may have written the line. @param {unknown} code */
function errorOf(code) {
  return Object.entries(catalogue).find(([known]) => known === code)?.[1];
}

/** @param {LogEntry} entry @returns {string | undefined} */
function faultReason({ fault, cause }) {
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

/** @param {LogEntry} entry @returns {string | undefined} */
function trialReason({ trial, decision }) {
  if (trial === undefined) return undefined;
  const by = trial === 'banned' ? 'a ban' : `its ${text(trial)} limit`;
  const too = decision === 'admitted' ? '' : ' too';
  return `the trial of the plan would have refused the request${too}, by ${by}`;
}

/** @param {string} sentence */
function capitalized(sentence) {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

/** @param {unknown} value */
function text(value) {
  return value === undefined ? '' : String(value);
}

/** Matches the first eight or more characters of a request id, because the log at a terminal prints only eight. */
export const requestIdStart = /^[0-9a-f]{8}[0-9a-f-]{0,28}$/i;

/**
 * Parses a line of a log. Tools such as `docker compose logs` may put a name in front of each line.
 *
 * @param {string} line
 * @returns {LogEntry | undefined}
 */
export function parseEntry(line) {
  try {
    const entry = JSON.parse(line.slice(line.indexOf('{')));
    return typeof entry === 'object' && entry !== null ? entry : undefined;
  } catch {
    return undefined;
  }
}

/** Whether an entry about a request is its access line. @param {LogEntry} entry */
export function isAccessLine({ status, msg }) {
  return status !== undefined && msg === undefined;
}

/**
 * The number of lines read, the number of log entries among them, and the earliest and latest timestamps of these entries (ISO 8601).
 *
 * @typedef {{ lines: number, entries: number, fromAt?: string, toAt?: string }} LinesRead
 */

/** Counts a line of the log. @param {LinesRead} read @param {string | undefined} at the timestamp of its entry; undefined without an entry */
export function countLine(read, at) {
  read.lines += 1;
  if (at === undefined) return;
  read.entries += 1;
  if (read.fromAt === undefined || at < read.fromAt) read.fromAt = at;
  if (read.toAt === undefined || at > read.toAt) read.toAt = at;
}

/** @param {string} requestId @param {LinesRead} read */
export function notFoundText(requestId, { lines, entries, fromAt, toAt }) {
  const read = `${counted(lines, 'line was', 'lines were')} read`;
  if (fromAt === undefined || toAt === undefined) {
    return `No request ${requestId}: ${read}, but none is a line of a gateway's JSON log. A gateway writes this log to standard output.`;
  }
  const others =
    lines === entries
      ? ''
      : ` (${counted(lines - entries, 'of them is', 'of them are')} not from a JSON log)`;
  return `No request ${requestId}: ${read}${others}, from ${utcSecond(fromAt)} to ${utcSecond(toAt)} UTC. Is the request of another time, or of another gateway?`;
}
