import { type ErrorCode, errors } from '../errors.ts';
import type { Exchange } from '../exchange.ts';
import type { Standing } from '../model.ts';

/** The one line that a finished request leaves in the log: flat, without headers, query or secrets. */
export type AccessLine = Readonly<Record<string, string | number | undefined>>;

/** A careless client may put a key into the path: a segment longer than any int64 is not shown. */
const longSegment = /[^/]{21,}/g;

/** pino's number for `info`. */
const level = 30;

export function accessLine(exchange: Exchange): AccessLine {
  const { req, key, offered, decision, standing, upstream, snapshot } = exchange;
  return {
    level,
    time: new Date().toISOString(),
    requestId: exchange.id,
    method: req.method,
    path: exchange.path?.replaceAll(longSegment, '…'),
    operation: offered?.operation.id,
    status: exchange.status,
    error: exchange.errorCode,
    fault: exchange.fault,
    cause: exchange.cause,
    keyId: key?.id,
    plan: key?.plan,
    address: exchange.origin.address,
    decision: decision?.kind,
    source: decision?.source,
    window: standing?.inForce.name,
    limit: standing?.inForce.limit,
    remaining: standing?.inForce.remaining,
    target: upstream?.target,
    attempts: upstream?.attempts,
    upstreamMs: upstream === undefined ? undefined : roundMs(upstream.upstreamMs),
    totalMs: roundMs(performance.now() - exchange.startedMs),
    config: snapshot.settings.version,
  };
}

/** The line of what the listener refused before there was a request. */
export function rejectionLine(rejection: {
  readonly requestId: string;
  readonly code: ErrorCode;
  readonly peerAddress: string;
  readonly standing: Standing;
  readonly config: string;
}): AccessLine {
  const { requestId, code, peerAddress, standing, config } = rejection;
  return {
    level,
    time: new Date().toISOString(),
    requestId,
    status: errors[code].status,
    error: code,
    fault: errors[code].fault,
    address: peerAddress,
    window: standing.inForce.name,
    limit: standing.inForce.limit,
    remaining: standing.inForce.remaining,
    config,
  };
}

function roundMs(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
