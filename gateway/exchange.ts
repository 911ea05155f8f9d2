import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ErrorCode, Fault } from './errors.ts';
import type { UpstreamUse } from './forward/forward-outcome.ts';
import { type ClientOrigin, clientOrigin } from './identify/client-origin.ts';
import type { ClientResponse } from './listen/client-response.ts';
import type { OfferedOperation } from './match/operation-table.ts';
import type { AddressDecision, Decision, Key } from './model.ts';
import type { Snapshot } from './snapshot.ts';

/**
 * One request and what is learnt about it on its way: each station adds its finding, the recording reads them all.
 * It holds the snapshot that the request began with, so that a reload never changes a request in flight.
 */
export interface Exchange {
  readonly id: string;
  readonly req: IncomingMessage;
  readonly res: ClientResponse;
  readonly snapshot: Snapshot;
  readonly origin: ClientOrigin;
  /** Monotonic, ms. */
  readonly startedMs: number;
  /** The connection to take over, when the request asks for an upgrade that its operation allows. */
  readonly upgrade: { readonly socket: Duplex; readonly head: Buffer } | undefined;
  /** The raw path without the query: a careless client may put a key there. Unset until screened. */
  path: string | undefined;
  /** Where this request ended is not certain, so nothing behind it may be read as another. */
  endsConnection: boolean;
  /** What the parser found wrong with its body: that was answered in place of what the path would have said. */
  rejectedAs: ErrorCode | undefined;
  offered: OfferedOperation | undefined;
  key: Key | undefined;
  decision: Decision | AddressDecision | undefined;
  /** The status sent, or 499 when the client went away before an answer; 0 until the answer is decided. */
  status: number;
  errorCode: string | undefined;
  fault: Fault | undefined;
  upstream: UpstreamUse | undefined;
  /** Why it failed, for the log only. */
  cause: string | undefined;
}

export function openExchange(
  req: IncomingMessage,
  res: ClientResponse,
  snapshot: Snapshot,
  upgrade?: Exchange['upgrade'],
): Exchange {
  return {
    id: randomUUID(),
    req,
    res,
    snapshot,
    origin: clientOrigin(originFields(req), snapshot.trustedProxies),
    startedMs: performance.now(),
    upgrade,
    path: undefined,
    endsConnection: false,
    rejectedAs: undefined,
    offered: undefined,
    key: undefined,
    decision: undefined,
    status: 0,
    errorCode: undefined,
    fault: undefined,
    upstream: undefined,
    cause: undefined,
  };
}

function originFields(req: IncomingMessage) {
  const { headers } = req;
  return {
    peerAddress: req.socket.remoteAddress ?? '',
    host: headers.host ?? '',
    xForwardedFor: single(headers['x-forwarded-for']),
    xForwardedHost: single(headers['x-forwarded-host']),
    xForwardedProto: single(headers['x-forwarded-proto']),
  };
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}
