import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { plainAddress } from '../shared/address-group.ts';
import type { ErrorCode, Fault } from '../shared/errors.ts';
import type { BucketDecision, Decision } from '../shared/model.ts';
import type { InvalidSecret } from './authenticate/authenticate-key.ts';
import type { ClientOrigin, OriginFields } from './authenticate/client-origin.ts';
import type { UpstreamUse } from './forward/forward-types.ts';
import type { Arrival } from './listen/listener.ts';
import type { ClientResponse } from './respond/client-response.ts';
import type { OfferedOperation } from './route/operation-table.ts';
import type { KnownKey, Snapshot } from './snapshot.ts';

/**
 * One arrival and everything that the stations find out about it. A member is undefined until its station has run. The stages
 * below are the same object with a narrower type, so the compiler checks the order of the stations.
 */
export class Exchange {
  readonly id = randomUUID();
  readonly arrival: Arrival;
  readonly req: IncomingMessage;
  readonly res: ClientResponse;
  /** The configuration when the exchange began. A reload does not change it. */
  readonly snapshot: Snapshot;
  /** Monotonic, ms. */
  readonly startedMs = performance.now();
  /** The client's address. Until `origin` is known, the peer's address. */
  readonly address: string;
  readonly origin: ClientOrigin | undefined = undefined;
  /** The raw path without the query, in which a careless client may put a key. */
  readonly path: string | undefined = undefined;
  /** The raw value of the field. For a WebSocket whose secret is in a subprotocol, the equivalent field value. */
  readonly authorization: string | undefined = undefined;
  /** The end of this request is uncertain, so no later octet of its connection may be read as another request. */
  readonly endsConnection: boolean = false;
  readonly offered: OfferedOperation | undefined = undefined;
  readonly key: KnownKey | undefined = undefined;
  /** For the log: set instead of `key` when the presented secret is not valid. */
  readonly invalidSecret: InvalidSecret | undefined = undefined;
  readonly decision: Decision | BucketDecision | undefined = undefined;
  /** When the limits of the key were decided; monotonic, ms. */
  readonly decidedMs: number | undefined = undefined;
  readonly upstream: UpstreamUse | undefined = undefined;
  /** When the exchange ended; monotonic, ms. 0 until then. */
  readonly endedMs: number = 0;
  /** The status of the response, or 499 when the client closed the connection before it; 0 until it is decided. */
  readonly status: number = 0;
  readonly errorCode: ErrorCode | undefined = undefined;
  readonly fault: Fault | undefined = undefined;
  /** For the log: why the request failed. */
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

/** The client's address is known. */
export interface Located extends Exchange {
  readonly origin: ClientOrigin;
}

/** The head of the request is accepted. */
export interface Screened extends Located {
  readonly path: string;
}

/** The request has a valid key. */
export interface Authenticated extends Screened {
  readonly key: KnownKey;
}

/** The request is charged, to a key or to a bucket. Every response carries the figures of that decision. */
export interface Charged extends Exchange {
  readonly decision: Decision | BucketDecision;
}

/** The limits of the key are decided. */
export interface Decided extends Authenticated {
  readonly decision: Decision;
}

/** The key may call this operation. */
export interface Permitted extends Decided {
  readonly offered: OfferedOperation;
}

/** For single members. `Object.assign` for every member took 3 % of the CPU of a refusal. */
export function writable(exchange: Exchange): { -readonly [Name in keyof Exchange]: Exchange[Name] } {
  return exchange;
}

export function locate(exchange: Exchange, origin: ClientOrigin): Located {
  const open = writable(exchange);
  open.origin = origin;
  open.address = origin.address;
  return open as Located;
}

export function accept(
  exchange: Located,
  { path, authorization }: { readonly path: string; readonly authorization: string | undefined },
): Screened {
  const open = writable(exchange);
  open.path = path;
  open.authorization = authorization;
  return open as Screened;
}

export function authenticate(exchange: Screened, key: KnownKey): Authenticated {
  writable(exchange).key = key;
  return exchange as Authenticated;
}

export function decide(exchange: Authenticated, key: KnownKey, decision: Decision): Decided {
  const open = writable(exchange);
  open.key = key;
  open.decision = decision;
  open.decidedMs = performance.now();
  return open as Decided;
}

export function permit(exchange: Decided, offered: OfferedOperation): Permitted {
  writable(exchange).offered = offered;
  return exchange as Permitted;
}

/** Adds what a station found. For rare requests, because it uses `Object.assign`. */
export function found<Stage extends Exchange, Finding extends Partial<Exchange>>(
  exchange: Stage,
  finding: Finding,
): Stage & Finding {
  return Object.assign(exchange, finding);
}

/** The duration of an ended exchange without the time at the upstream. */
export function ownMsOf({ startedMs, endedMs, upstream }: Exchange): number {
  return endedMs - startedMs - (upstream?.upstreamMs ?? 0);
}

/** The time at the upstream. Undefined when no target was tried, for example because the body is too large. */
export function upstreamMsOf({ upstream }: Pick<Exchange, 'upstream'>): number | undefined {
  return upstream === undefined || upstream.attempts === 0 ? undefined : upstream.upstreamMs;
}

/** Who caused a 5xx, or a response that was cut off. Undefined when the exchange succeeded or the client caused its failure. */
export function failureOf({ fault }: Pick<Exchange, 'fault'>): Exclude<Fault, 'client'> | undefined {
  return fault === 'client' ? undefined : fault;
}

/** Whether the client speaks TLS with the gateway itself. */
export function isOverTls({ socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket;
}

/** The fields of a request that say where it came from. */
export function originFields(req: IncomingMessage): OriginFields {
  const { headers, socket } = req;
  return {
    peerAddress: socket.remoteAddress ?? '',
    proto: isOverTls(req) ? 'https' : 'http',
    host: headers.host ?? '',
    xForwardedFor: single(headers['x-forwarded-for']),
    xForwardedHost: single(headers['x-forwarded-host']),
    xForwardedProto: single(headers['x-forwarded-proto']),
  };
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}
