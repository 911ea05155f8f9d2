import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { plainAddress } from '../shared/address-group.ts';
import type { Fault } from '../shared/errors.ts';
import type { BucketDecision, Decision } from '../shared/model.ts';
import type { ClientOrigin, OriginFields } from './authenticate/client-origin.ts';
import type { InvalidSecret } from './authenticate/identify-key.ts';
import type { UpstreamUse } from './forward/forward-types.ts';
import type { Arrival } from './listen/listener.ts';
import type { ClientResponse } from './respond/client-response.ts';
import type { OfferedOperation } from './route/operation-table.ts';
import type { KnownKey, Snapshot } from './snapshot.ts';

/**
 * One arrival, and what the stations find out about it: each adds its finding, and the log line is made of them all. It
 * keeps the snapshot that it began with, so that a reload never changes an exchange in flight.
 */
export interface Exchange {
  readonly id: string;
  readonly arrival: Arrival;
  readonly req: IncomingMessage;
  readonly res: ClientResponse;
  readonly snapshot: Snapshot;
  /** Monotonic, ms. */
  readonly startedMs: number;
  /** Set by the first station; before that only the peer of the connection is known. */
  origin: ClientOrigin | undefined;
  /** The raw path without the query: a careless client may put a key there. Unset until screened. */
  path: string | undefined;
  /** It is not certain where this request ends, so nothing behind it may be read as another request. */
  endsConnection: boolean;
  offered: OfferedOperation | undefined;
  key: KnownKey | undefined;
  /** Set in place of `key` when the secret that was presented is not valid; for the log only. */
  invalidSecret: InvalidSecret | undefined;
  decision: Decision | BucketDecision | undefined;
  /** When the limits of its key were decided; monotonic, ms. */
  decidedMs: number | undefined;
  /** When it was over; monotonic, ms. 0 until then. */
  endedMs: number;
  /** The status of the response, or 499 when the client went away before it; 0 until it is decided. */
  status: number;
  errorCode: string | undefined;
  fault: Fault | undefined;
  upstream: UpstreamUse | undefined;
  /** Why the request failed; for the log only. */
  cause: string | undefined;
}

export function openExchange(arrival: Arrival, snapshot: Snapshot): Exchange {
  const { res } = arrival;
  return {
    id: randomUUID(),
    arrival,
    req: res.req,
    res,
    snapshot,
    startedMs: performance.now(),
    origin: undefined,
    path: undefined,
    endsConnection: false,
    offered: undefined,
    key: undefined,
    invalidSecret: undefined,
    decision: undefined,
    decidedMs: undefined,
    endedMs: 0,
    status: 0,
    errorCode: undefined,
    fault: undefined,
    upstream: undefined,
    cause: undefined,
  };
}

/** The client's address, as far as it is known. */
export function addressOf({ origin, req }: Exchange): string {
  return origin?.address ?? plainAddress(req.socket.remoteAddress ?? '');
}

/** What an exchange that is over took apart from the upstream, and from waiting for it. */
export function ownMsOf({ startedMs, endedMs, upstream }: Exchange): number {
  return endedMs - startedMs - (upstream?.upstreamMs ?? 0);
}

/** The time at the upstream; undefined where no target was tried: a body that is too large, for example, is refused before. */
export function upstreamMsOf({ upstream }: Pick<Exchange, 'upstream'>): number | undefined {
  return upstream === undefined || upstream.attempts === 0 ? undefined : upstream.upstreamMs;
}

/**
 * By whose fault it failed, where that is not the client's: it was answered 5xx, or its response ended too early, whatever its
 * status.
 */
export function failureOf({ fault }: Pick<Exchange, 'fault'>): Exclude<Fault, 'client'> | undefined {
  return fault === 'client' ? undefined : fault;
}

/** Whether the client speaks TLS with the gateway itself. */
export function isOverTls({ socket }: IncomingMessage): boolean {
  return socket instanceof TLSSocket;
}

/** The fields of a request that say where it came from. */
export function originFields({ req }: Exchange): OriginFields {
  const { headers } = req;
  return {
    peerAddress: req.socket.remoteAddress ?? '',
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
