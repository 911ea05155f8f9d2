import { shownCause, shownPath } from '../../../observe/access-line.ts';
import { type Exchange, failureOf } from '../../../request/exchange.ts';
import type { Attempt } from '../../../request/forward/forward-types.ts';
import { anyMethod, type Operation, type Settings, shownWindow } from '../../../shared/model.ts';
import { policyName } from '../../../shared/words/limit-names.js';
import type { RequestTrace } from './request-trace.ts';
import type { Kept } from './sampler.ts';

/**
 * Writes spans as JSON of OTLP (opentelemetry-proto, "JSON Protobuf Encoding"). The names follow the stable "Semantic conventions for HTTP
 * spans" of OpenTelemetry. The texts are joined member by member, which takes half of the time of the project's encoder. They are ASCII, so
 * their length is their size in octets.
 */
export function createSpanTexts({ operations, basePath, upstreams }: Settings) {
  const routes = new Map(operations.map((operation) => [operation, routeOf(operation, basePath)]));
  const servers = new Map(
    upstreams.map(({ name, url }) => [
      name,
      { name: quoted(name), url, members: serverMembers(new URL(url)) },
    ]),
  );

  return {
    /** The spans of an ended request, each as JSON. @param nowMs epoch ms */
    *textsOf(
      exchange: Exchange,
      trace: RequestTrace,
      { nowMs, kept }: { readonly nowMs: number; readonly kept: Kept | undefined },
    ): Generator<string> {
      const { req, arrival, endedMs, offered } = exchange;
      const epochMs = nowMs - endedMs;
      const method = arrival.kind === 'rejection' ? undefined : req.method;
      yield serverSpan(exchange, trace, {
        epochMs,
        kept,
        method,
        route: offered && routes.get(offered.operation),
      });
      const server = servers.get(offered?.operation.upstream ?? '');
      for (const [index, attempt] of trace.attempts.entries())
        yield clientSpan(attempt, exchange, trace, { epochMs, method, number: index + 1, server });
    },
  };
}

interface Route {
  /** For the name of the span. */
  readonly end: string;
  readonly member: string;
}

interface Server {
  readonly name: string;
  readonly url: string;
  readonly members: string;
}

/** @param epochMs the start of the monotonic clock, epoch ms */
function serverSpan(
  exchange: Exchange,
  trace: RequestTrace,
  {
    epochMs,
    kept,
    method,
    route,
  }: {
    readonly epochMs: number;
    readonly kept: Kept | undefined;
    readonly method: string | undefined;
    readonly route: Route | undefined;
  },
): string {
  const { startedMs, endedMs, status, errorCode, path, origin, address, key, decision, upstream } = exchange;
  const { offered, cause, fault, host } = exchange;
  const { parent } = trace;
  let span = beginning(trace.traceId, trace.spanId);
  if (parent !== undefined) span += `,"parentSpanId":"${parent.spanId}","flags":769`;
  else span += ',"flags":257';
  span += `,"kind":2,"name":"${nameOf(method)}${route?.end ?? ''}"`;
  span += `,"startTimeUnixNano":"${nanos(epochMs + startedMs)}","endTimeUnixNano":"${nanos(epochMs + endedMs)}"`;
  span += `,"attributes":[${methodMembers(method)}`;
  if (route !== undefined) span += route.member;
  if (path !== undefined) span += text('url.path', quoted(shownPath(path)));
  if (origin !== undefined) {
    if (origin.forwardedProto === 'https' || origin.forwardedProto === 'http')
      span += text('url.scheme', `"${origin.forwardedProto}"`);
    const named = origin.forwardedHost ?? host;
    if (named !== undefined) span += hostMembers(named);
  }
  span += text('client.address', quoted(address));
  span += text('network.protocol.version', `"${exchange.req.httpVersion}"`);
  span += int('http.response.status_code', status);
  const isFailed = failureOf(exchange) !== undefined || status >= 500;
  if (isFailed) span += text('error.type', `"${errorCode ?? status}"`);
  span += text('tollgate.request_id', `"${exchange.id}"`);
  if (errorCode !== undefined) span += text('tollgate.error', `"${errorCode}"`);
  if (fault !== undefined) span += text('tollgate.fault', `"${fault}"`);
  if (offered !== undefined) span += text('tollgate.operation', quoted(offered.operation.id));
  if (key !== undefined)
    span += text('tollgate.key', quoted(key.id)) + text('tollgate.plan', quoted(key.plan));
  if (decision !== undefined) {
    const { name, group } = shownWindow(decision.rateLimit);
    span += text('tollgate.decision', `"${decision.kind}"`);
    span += text('tollgate.window', quoted(policyName(name, group)));
    if ('units' in decision) span += int('tollgate.units', decision.units);
  }
  if (upstream !== undefined) span += int('tollgate.attempts', upstream.attempts);
  if (kept !== undefined) span += text('tollgate.kept', `"${kept}"`);
  return `${span}]${statusMember(isFailed, cause)}}`;
}

function clientSpan(
  { target, startedMs, endedMs, status, cause, error }: Attempt,
  { path }: Exchange,
  trace: RequestTrace,
  {
    epochMs,
    method,
    number,
    server,
  }: {
    readonly epochMs: number;
    readonly method: string | undefined;
    readonly number: number;
    readonly server: Server | undefined;
  },
): string {
  let span = beginning(trace.traceId, trace.attemptId(number));
  span += `,"parentSpanId":"${trace.spanId}","flags":257,"kind":3,"name":"${nameOf(method)}"`;
  span += `,"startTimeUnixNano":"${nanos(epochMs + startedMs)}","endTimeUnixNano":"${nanos(epochMs + endedMs)}"`;
  span += `,"attributes":[${methodMembers(method)}`;
  if (server !== undefined) {
    span += server.members + text('tollgate.upstream', server.name);
    span += text('url.full', quoted(server.url + shownPath(path ?? '')));
  }
  const colon = target.lastIndexOf(':');
  const address = target.slice(0, colon).replace(/^\[|\]$/g, '');
  span += text('network.peer.address', quoted(address)) + int('network.peer.port', target.slice(colon + 1));
  if (status !== 0) span += int('http.response.status_code', status);
  // A status from 400 on is an error of a client span.
  const isFailed = cause !== undefined || status >= 400;
  if (isFailed) span += text('error.type', `"${error ?? (cause === undefined ? status : 'aborted')}"`);
  if (number > 1) span += int('http.request.resend_count', number - 1);
  return `${span}]${statusMember(isFailed, cause)}}`;
}

function beginning(traceId: string | undefined, spanId: string | undefined): string {
  return `{"traceId":"${traceId}","spanId":"${spanId}"`;
}

/** The code of an error is 2. The message is the cause in the log, if there is one. */
function statusMember(isFailed: boolean, cause: string | undefined): string {
  if (!isFailed) return '';
  if (cause === undefined) return ',"status":{"code":2}';
  return `,"status":{"code":2,"message":${quoted(shownCause(cause))}}`;
}

/** Epoch nanoseconds as text, exact to the microsecond. A number would not be exact. */
function nanos(epochMs: number): string {
  return `${Math.round(epochMs * 1_000)}000`;
}

/** The methods of RFC 9110 §9, of RFC 5789 and of the draft "QUERY". Other methods would make the values of an attribute unbounded. */
const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'CONNECT',
  'OPTIONS',
  'TRACE',
  'PATCH',
  'QUERY',
]);

/** @param method undefined if the parser has refused the request */
function nameOf(method = ''): string {
  return knownMethods.has(method) ? method : 'HTTP';
}

/** Node's parser knows 35 methods, so the original method is short. */
function methodMembers(method: string | undefined): string {
  const known = method !== undefined && knownMethods.has(method) ? method : '_OTHER';
  const member = `{"key":"http.request.method","value":{"stringValue":"${known}"}}`;
  if (method === undefined || known === method) return member;
  return member + text('http.request.method_original', quoted(method));
}

function routeOf({ method, template }: Operation, basePath: string): Route | undefined {
  // Without an API document, the only operation has no template.
  if (method === anyMethod) return undefined;
  const route = quoted(basePath + template);
  return { end: ` ${route.slice(1, -1)}`, member: text('http.route', route) };
}

function serverMembers({ hostname, port, protocol }: URL): string {
  const number = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  return text('server.address', quoted(hostname.replace(/^\[|\]$/g, ''))) + int('server.port', number);
}

const hostForm = /^(\[[\da-fA-F:.]+\]|[^:\s,]{1,255})(?::(\d{1,5}))?$/;

/** The host that the client addresses. A text that is not a host and a port is left out. */
function hostMembers(host: string): string {
  const [, name, port] = hostForm.exec(host) ?? [];
  if (name === undefined) return '';
  const members = text('server.address', quoted(name.replace(/^\[|\]$/g, '')));
  return port === undefined ? members : members + int('server.port', Number(port));
}

/** @param json the value as JSON */
function text(key: string, json: string): string {
  return `,{"key":"${key}","value":{"stringValue":${json}}}`;
}

/** Integers of 64 bits are texts in JSON. */
function int(key: string, value: number | string): string {
  return `,{"key":"${key}","value":{"intValue":"${value}"}}`;
}

const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const nonAscii = /[\u0080-\uffff]/g;

/** As a JSON string of ASCII characters. */
function quoted(value: string): string {
  if (plain.test(value)) return `"${value}"`;
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(nonAscii, escaped);
}
