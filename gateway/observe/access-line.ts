import type { Exchange } from '../exchange.ts';

/** The one line that a finished request leaves in the log: flat, without headers, query or secrets. */
export function accessLine(exchange: Exchange): Record<string, string | number | undefined> {
  const { req, key, offered, decision, standing, upstream, snapshot } = exchange;
  return {
    requestId: exchange.id,
    method: req.method,
    path: exchange.path,
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

function roundMs(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
