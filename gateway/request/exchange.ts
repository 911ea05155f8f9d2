import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { plainAddress } from '../shared/addresses/address-group.ts';
import type { ErrorCode, Fault } from '../shared/errors.ts';
import type { BucketDecision, Decision } from '../shared/model.ts';
import type { InvalidSecret } from './authenticate/authenticate-key.ts';
import type { ClientOrigin, OriginFields } from './authenticate/client-origin.ts';
import type { UpstreamUse } from './forward/forward-types.ts';
import type { Arrival } from './listen/listener.ts';
import type { ScreenedRequest } from './listen/screen-request.ts';
import type { ClientResponse } from './respond/client-response.ts';
import type { OfferedOperation } from './route/operation-table.ts';
import type { KnownKey, Snapshot } from './snapshot.ts';

/**
 * One request and all results of the steps that process it. A member is undefined until the step that sets it has run. The interfaces below
 * are narrower types of the same object. The compiler uses these types to check the order of the steps.
 */
export class Exchange {
  readonly id = randomUUID();
  readonly arrival: Arrival;
  readonly req: IncomingMessage;
  readonly res: ClientResponse;
  /** The configuration with which the exchange began. A reload does not change the configuration of a running exchange. */
  readonly snapshot: Snapshot;
  /** Monotonic, ms. */
  readonly startedMs = performance.now();
  /** The client's address, or the peer's address while `origin` is not set. */
  readonly address: string;
  readonly origin: ClientOrigin | undefined = undefined;
  /** The raw path without the query, for the log. The log does not contain the query, because a client may put a secret into it. */
  readonly path: string | undefined = undefined;
  /** The request target in origin form. The upstream gets this target. */
  readonly target: string | undefined = undefined;
  /** The host and port that the client addresses, from an absolute form or from `Host`. */
  readonly host: string | undefined = undefined;
  /** The raw `Authorization` field. If the client sent the secret as a WebSocket subprotocol, this field was made from the subprotocol. */
  readonly authorization: string | undefined = undefined;
  /** Whether the connection must close after the response, because the end of the request is uncertain. */
  readonly endsConnection: boolean = false;
  readonly offered: OfferedOperation | undefined = undefined;
  readonly key: KnownKey | undefined = undefined;
  /** The refused secret, for the log. Set instead of `key` when the gateway refuses the secret. */
  readonly invalidSecret: InvalidSecret | undefined = undefined;
  readonly decision: Decision | BucketDecision | undefined = undefined;
  /** The time at which the limiter decided the request; monotonic, ms. */
  readonly decidedMs: number | undefined = undefined;
  readonly upstream: UpstreamUse | undefined = undefined;
  /** What a capability records about the request for a trace. */
  readonly trace: ExchangeTrace | undefined = undefined;
  /** The time at which the exchange ended; monotonic, ms; 0 before the end. */
  readonly endedMs: number = 0;
  /** The status of the response, or 499 when the client was gone before its end; 0 until the status is known. */
  readonly status: number = 0;
  readonly errorCode: ErrorCode | undefined = undefined;
  readonly fault: Fault | undefined = undefined;
  /** The name under which the usage record counts the refusal (`Refusal`). */
  readonly countedAs: string | undefined = undefined;
  /** The reason for the failure of the request, for the log. */
  readonly cause: string | undefined = undefined;

  constructor(arrival: Arrival, snapshot: Snapshot) {
    const { res } = arrival;
    this.arrival = arrival;
    this.req = res.req;
    this.res = res;
    this.snapshot = snapshot;
    this.address = plainAddress(res.req.socket.remoteAddress ?? '');
  }
}

/** The ids of the request's span in a trace, as lower-case hex; undefined while the request is not recorded. */
export interface ExchangeTrace {
  readonly traceId: string | undefined;
  readonly spanId: string | undefined;
}

export interface Located extends Exchange {
  readonly origin: ClientOrigin;
}

/** An exchange whose request head has passed all checks. */
export interface Screened extends Located {
  readonly path: string;
  readonly target: string;
  readonly host: string;
}

export interface Authenticated extends Screened {
  readonly key: KnownKey;
}

/** An exchange with a decision of the limiter for a key or a bucket. The response has the rate-limit fields of `decision`. */
export interface Charged extends Exchange {
  readonly decision: Decision | BucketDecision;
}

export interface Decided extends Authenticated {
  readonly decision: Decision;
}

/** An exchange whose key may call the requested operation. */
export interface Permitted extends Decided {
  readonly offered: OfferedOperation;
}

/** Returns the exchange with writable members. Setting members with `Object.assign` took 3 % of the CPU time of a refused request. */
export function asMutable(exchange: Exchange): { -readonly [Name in keyof Exchange]: Exchange[Name] } {
  return exchange;
}

export function locate(exchange: Exchange, origin: ClientOrigin): Located {
  const open = asMutable(exchange);
  open.origin = origin;
  open.address = origin.address;
  return open as Located;
}

export function accept(
  exchange: Located,
  { path, target, host, authorization }: Omit<ScreenedRequest, 'kind'>,
): Screened {
  const open = asMutable(exchange);
  open.path = path;
  open.target = target;
  open.host = host;
  open.authorization = authorization;
  return open as Screened;
}

export function authenticate(exchange: Screened, key: KnownKey): Authenticated {
  asMutable(exchange).key = key;
  return exchange as Authenticated;
}

export function decide(exchange: Authenticated, key: KnownKey, decision: Decision): Decided {
  const open = asMutable(exchange);
  open.key = key;
  open.decision = decision;
  open.decidedMs = performance.now();
  return open as Decided;
}

export function permit(exchange: Decided, offered: OfferedOperation): Permitted {
  asMutable(exchange).offered = offered;
  return exchange as Permitted;
}

/** Adds the results of a step to the exchange. Code that runs for most requests uses `asMutable`, because `Object.assign` is slow. */
export function withResults<Stage extends Exchange, Finding extends Partial<Exchange>>(
  exchange: Stage,
  finding: Finding,
): Stage & Finding {
  return Object.assign(exchange, finding);
}

export function ownMsOf({ startedMs, endedMs, upstream }: Exchange): number {
  return endedMs - startedMs - (upstream?.upstreamMs ?? 0);
}

/** Returns the time at the upstream; undefined when no target was tried, for example because the body is too large. */
export function upstreamMsOf({ upstream }: Pick<Exchange, 'upstream'>): number | undefined {
  return upstream === undefined || upstream.attempts === 0 ? undefined : upstream.upstreamMs;
}

/** Returns who caused a 5xx or an incomplete response; undefined when the exchange succeeded or the client caused the failure. */
export function failureOf({ fault }: Pick<Exchange, 'fault'>): Exclude<Fault, 'client'> | undefined {
  return fault === 'client' ? undefined : fault;
}

/** Whether the connection between peer and gateway uses TLS. */
export function isOverTls({ socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket;
}

export function originFields(req: IncomingMessage): OriginFields {
  const { headers, socket } = req;
  return {
    peerAddress: socket.remoteAddress ?? '',
    proto: isOverTls(req) ? 'https' : 'http',
    xForwardedFor: single(headers['x-forwarded-for']),
    xForwardedHost: single(headers['x-forwarded-host']),
    xForwardedProto: single(headers['x-forwarded-proto']),
  };
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}
