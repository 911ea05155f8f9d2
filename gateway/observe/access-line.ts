import type { Exchange } from '../request/exchange.ts';
import { quoted } from '../request/log-members.ts';
import { type RateLimitState, shownWindow } from '../shared/model.ts';
import { rememberLast } from '../shared/structures/remember-last.ts';
import { policyName } from '../shared/words/limit-names.js';
import { traceIdOf } from './trace-id.ts';

const isoTime = rememberLast((epochMs: number) => new Date(epochMs).toISOString());
const decisionMembers = rememberLast(
  (decision: Found<'decision'>) =>
    `,"decision":"${decision.kind}","source":"${decision.source}"${windowMembers(decision.rateLimit)}${banMembers(decision.rateLimit)}${unitsMember(decision)}${trialMember(decision)}`,
);

type Found<Name extends keyof Exchange> = NonNullable<Exchange[Name]>;

/**
 * Returns the log line of a finished request: flat JSON without header fields, query or secrets. The line is built
 * member by member, because the log takes more CPU per request than any other part, and `JSON.stringify` took four
 * times as long.
 */
export function accessLine(exchange: Exchange): string {
  const { arrival, req, path, offered, errorCode, fault, cause, key, invalidSecret, decision } = exchange;
  const { upstream, snapshot, trace } = exchange;
  let line = beginning(exchange.id);
  // The method of a request that the parser refused is unknown.
  if (arrival.kind !== 'rejection') line += `,"method":"${req.method}"`;
  const traceId = trace?.traceId ?? traceIdOf(req.headers.traceparent);
  if (traceId !== undefined) line += `,"traceId":"${traceId}"`;
  if (trace?.spanId !== undefined) line += `,"spanId":"${trace.spanId}"`;
  if (path !== undefined) line += `,"path":${quoted(shownPath(path))}`;
  if (offered !== undefined) line += offered.logged;
  line += `,"status":${exchange.status}`;
  if (errorCode !== undefined) line += `,"error":"${errorCode}"`;
  if (fault !== undefined) line += `,"fault":"${fault}"`;
  if (cause !== undefined) line += `,"cause":${quoted(shownCause(cause))}`;
  if (key !== undefined) line += key.logged;
  else if (invalidSecret !== undefined) line += invalidSecretMembers(invalidSecret);
  line += `,"address":"${exchange.address}"`;
  if (decision !== undefined) line += decisionMembers(decision);
  if (upstream !== undefined) {
    const { target, attempts, upstreamMs } = upstream;
    if (target !== undefined) line += `,"target":"${target}"`;
    line += `,"attempts":${attempts},"upstreamMs":${upstreamMs.toFixed(3)}`;
  }
  const totalMs = exchange.endedMs - exchange.startedMs;
  return `${line},"totalMs":${totalMs.toFixed(3)},"config":"${snapshot.settings.version}"}\n`;
}

function invalidSecretMembers({ status, keyId, digestStart }: Found<'invalidSecret'>): string {
  const owner = keyId === undefined ? '' : `,"keyId":${quoted(keyId)}`;
  return `,"keyStatus":"${status}"${owner},"secret":"${digestStart}"`;
}

/**
 * Returns the path without its long segments, because a client may put a secret into the path by mistake. Segments of up to 20 characters,
 * such as a 64-bit integer, are not removed. A very long path is cut, because the workers share a pipe, and the kernel may split writes of
 * more than 4 KiB.
 */
export function shownPath(path: string): string {
  if (path.length <= segmentShownMax) return path;
  const short = path.replaceAll(longSegment, '…');
  return short.length > pathShownMax ? `${short.slice(0, pathShownMax)}…` : short;
}

/** A cause may quote a certificate with many names. */
export function shownCause(cause: string): string {
  return cause.length > causeShownMax ? `${cause.slice(0, causeShownMax)}…` : cause;
}

const causeShownMax = 500;
const segmentShownMax = 20;
const pathShownMax = 2_000;
const longSegment = new RegExp(`[^/]{${segmentShownMax + 1},}`, 'g');

/** 30 is pino's number for `info`. */
function beginning(requestId: string): string {
  return `{"level":30,"time":"${isoTime(Date.now())}","requestId":"${requestId}"`;
}

/** Empty for a cost of 1 unit. Also empty for a bucket's decision, because a bucket counts requests and not units. */
function unitsMember(decision: Found<'decision'>): string {
  return 'units' in decision && decision.units !== 1 ? `,"units":${decision.units}` : '';
}

function trialMember({ trial }: Found<'decision'>): string {
  return trial === undefined || trial === 'admitted' ? '' : `,"trial":"${trial}"`;
}

/** The end of the ban, and whether an operator made it. */
function banMembers({ ban }: RateLimitState): string {
  if (ban === undefined) return '';
  return `,"bannedUntil":"${new Date(ban.untilMs).toISOString()}"${ban.byHand === undefined ? '' : ',"byHand":true'}`;
}

function windowMembers(rateLimit: RateLimitState): string {
  const { name, group, limit, remaining } = shownWindow(rateLimit);
  return `,"window":"${policyName(name, group)}","limit":${limit},"remaining":${remaining}`;
}
