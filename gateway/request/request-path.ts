import type { RequestHooks } from '../capabilities/interfaces/request.ts';
import { clientOrigin } from './authenticate/client-origin.ts';
import {
  accept,
  asMutable,
  authenticate,
  type Charged,
  decide,
  type Exchange,
  isOverTls,
  type Located,
  locate,
  originFields,
  type Permitted,
  permit,
  withResults,
} from './exchange.ts';
import type { Attempt, AttemptFields, ForwardOutcome, TunnelOpener } from './forward/forward-types.ts';
import type { ScreenRefusal } from './listen/screen-refusal.ts';
import { type ScreenedRequest, screenRequest } from './listen/screen-request.ts';
import { readKey } from './path/authenticate-request.ts';
import { decideCurrent, decideUnits, isUnconfirmed } from './path/decide-units.ts';
import { type Ending, end, gatewayFields, markFailed, refused } from './path/end-exchange.ts';
import { answerPreflight } from './path/own-answers.ts';
import { chargeAddress, refuseUnauthenticated } from './path/refuse-unauthenticated.ts';
import { isPreflight } from './respond/cors-fields.ts';
import { costRefusal, limitRefusal } from './respond/limit-refusal.ts';
import { escapeFault } from './route/escape-fault.ts';
import { isGone, mayCall, routeRequest } from './route/operation-table.ts';
import type { Stations } from './stations.ts';

/** Serves one request, from its arrival to its line in the access log. Never rejects. */
export async function serveExchange(
  exchange: Exchange,
  stations: Stations,
  hooks: RequestHooks,
): Promise<void> {
  try {
    await end(await travel(exchange, stations, hooks), stations);
  } catch (bug) {
    stations.reportBug(bug, exchange);
    await failForBug(exchange, stations);
  } finally {
    releaseSlot(exchange, stations);
    asMutable(exchange).endedMs = performance.now();
    tellAll(hooks.observeEnd, (observe) => observe(exchange), exchange, stations);
  }
}

/** Stops counting the request towards the concurrency limit of its key. A WebSocket counts until its socket is closed. */
function releaseSlot({ key, decision, req, status }: Exchange, { limiter }: Stations): void {
  if (key?.concurrent === undefined || decision?.kind !== 'admitted') return;
  const { id } = key;
  if (status === 101 && !req.socket.destroyed) req.socket.once('close', () => limiter.release(id));
  else limiter.release(id);
}

/** Calls each observer. An exception in one observer affects neither the others nor the request. */
function tellAll<Observe>(
  observers: readonly Observe[],
  call: (observe: Observe) => void,
  exchange: Exchange,
  stations: Stations,
): void {
  for (const observe of observers) {
    try {
      call(observe);
    } catch (bug) {
      stations.reportBug(bug, exchange);
    }
  }
}

/**
 * The whole path of a request, from top to bottom. The operation is looked up early, because all later responses have its
 * deprecation fields. An unknown path or method is refused only after the checks of key and limits. A client without a key
 * therefore learns only of the paths whose responses have such fields, and a key cannot try paths without a charge.
 */
async function travel(exchange: Exchange, stations: Stations, hooks: RequestHooks): Promise<Ending> {
  const { req, snapshot } = exchange;
  const { method = '' } = req;
  const origin = clientOrigin(originFields(req), snapshot.trustedProxies);
  const located = locate(exchange, origin);

  const head = screenHead(located, stations);
  if (head.kind === 'refused') {
    // A malformed request is charged to the client's address. The error of the request is never replaced by a 429, even when the address
    // bucket is used up.
    const charged = await chargeAddress(withResults(located, { endsConnection: true }), stations);
    return refused(charged, head);
  }
  const screened = accept(located, head);

  if (isPreflight(req, snapshot.corsOrigins)) return answerPreflight(screened, stations);

  const route = routeRequest(snapshot.operations, method, head.plainPath);
  const offered = route.kind === 'operation' ? route.offered : undefined;

  // Validation ensures that no operation of an API document has the path of a page of the gateway.
  const answerPage = hooks.pages.get(head.plainPath);
  if (answerPage !== undefined) return answerPage(screened, offered, stations);
  asMutable(screened).offered = offered;

  let caller = snapshot.authenticate(screened, stations.nowMs());
  if (caller.kind === 'unread') caller = await readKey(screened, caller, stations);
  if (caller.kind !== 'authenticated') return refuseUnauthenticated(screened, stations, caller);
  const authenticated = authenticate(screened, caller.key);

  let { key } = authenticated;
  // A request that matches no operation costs 1 unit.
  const charge = { units: offered?.operation.cost ?? 1, operation: offered?.operation.id };
  let decision = await decideUnits(key, charge, snapshot.rules, stations.limiter);
  if (isUnconfirmed(decision, key)) {
    const current = await decideCurrent(authenticated, decision, charge, stations);
    if (current.kind !== 'decided') return current;
    ({ key, decision } = current);
  }
  const decided = decide(authenticated, key, decision);
  const { units } = charge;
  for (const observe of hooks.observeDecision) observe(decided, units);
  if (decision.kind !== 'admitted') return refused(decided, limitRefusal(decision, snapshot));

  if (route.kind === 'not_found') return refused(decided, { code: 'not_found' });
  if (route.kind === 'method_not_allowed') {
    return refused(decided, { code: 'method_not_allowed', fields: ['Allow', route.allow] });
  }
  const { operation } = route.offered;
  if (!mayCall(key, operation)) return refused(decided, { code: 'operation_not_allowed' });
  const { upstreams } = snapshot.settings;
  const fault = escapeFault(snapshot.operations, route.offered, { method, ...head }, upstreams);
  if (fault !== undefined) {
    const { message, cause } = fault;
    return refused(withResults(decided, { cause }), { code: 'invalid_request', message });
  }
  if (isGone(operation, stations.nowMs())) return refused(decided, { code: 'gone' });
  for (const refuse of hooks.refuse) {
    const refusal = refuse(operation, decision);
    if (refusal !== undefined) return refused(decided, refusal);
  }
  if (decision.units < units) {
    withResults(decided, { cause: `the operation costs ${units} units, more than a limit of the key` });
    return refused(decided, costRefusal(units, decision.rateLimit));
  }

  return forward(permit(decided, route.offered), stations, hooks);
}

/** Checks the request head. If Node's parser has refused the request, the fault that the parser found is the result. */
function screenHead(
  { arrival, req, res, origin }: Located,
  { bounds }: Stations,
): ScreenedRequest | ScreenRefusal {
  if (res.rejection !== undefined) return { kind: 'refused', ...res.rejection };
  return screenRequest(req, {
    bounds,
    isHandshake: arrival.kind === 'upgrade',
    isSecure: isOverTls(req) || origin.trustedPeer,
  });
}

async function forward(exchange: Permitted, stations: Stations, hooks: RequestHooks): Promise<Ending> {
  const { forwarder } = stations;
  const { req, res, snapshot, origin, arrival, offered, key, target, host } = exchange;
  const request = {
    upstream: offered.operation.upstream,
    req,
    res,
    target,
    host,
    holder: key.id,
    requestFields: identityFields(exchange),
    keepForwarded: origin.trustedPeer,
    responseFields: gatewayFields(exchange),
    bodyBytesMax: snapshot.settings.bodyBytesMax,
    attemptFields: attemptFieldsOf(exchange, hooks),
    onAttemptEnd:
      hooks.observeAttempt.length > 0
        ? (attempt: Attempt) =>
            tellAll(hooks.observeAttempt, (observe) => observe(exchange, attempt), exchange, stations)
        : undefined,
  };
  const outcome =
    arrival.kind === 'upgrade'
      ? await forwarder.forwardUpgrade({
          ...request,
          socket: arrival.socket,
          head: arrival.head,
          opener: tunnelOpener(exchange),
        })
      : await forwarder.forward(request);
  return endingOf(outcome, exchange);
}

function attemptFieldsOf(exchange: Permitted, hooks: RequestHooks): AttemptFields | undefined {
  for (const find of hooks.attemptFields) {
    const found = find(exchange);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the header fields that identify the caller to the upstream, as a flat list of names and values. */
function identityFields({ id, key, origin, host }: Permitted): string[] {
  return [
    'X-Request-Id',
    id,
    'X-Key-Id',
    key.id,
    'X-Plan',
    key.plan,
    'X-Forwarded-For',
    origin.forwardedFor,
    'X-Forwarded-Host',
    origin.forwardedHost ?? host,
    'X-Forwarded-Proto',
    origin.forwardedProto,
    'Via',
    '1.1 tollgate',
  ];
}

/** Copies the data that an open WebSocket needs. A reference to the snapshot would keep an old snapshot in memory for days. */
function tunnelOpener({ id, key, address, authorization, offered }: Permitted): TunnelOpener {
  return { requestId: id, keyId: key.id, address, authorization, operation: offered.operation };
}

function endingOf(outcome: ForwardOutcome, exchange: Permitted): Ending {
  const open = asMutable(exchange);
  open.upstream = outcome;
  switch (outcome.kind) {
    case 'client_gone':
      withResults(exchange, { cause: outcome.cause });
      return { kind: 'client_gone', exchange };
    case 'forwarded': {
      const { status } = outcome;
      open.status = status;
      if (status >= 400) open.fault = status >= 500 ? 'upstream' : 'client';
      return { kind: 'forwarded' };
    }
    case 'failed': {
      const { cause, code, headersSent, retryAfterSeconds } = outcome;
      withResults(exchange, { cause });
      if (headersSent) {
        markFailed(exchange, code);
        withResults(exchange, { status: exchange.res.statusCode });
        return { kind: 'forwarded' };
      }
      // If the parser has found a fault in the request body, the parser's error states the cause of the failure.
      if (exchange.res.rejection !== undefined) return refused(exchange, exchange.res.rejection);
      const fields = retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)];
      return refused(exchange, { code, fields });
    }
  }
}

/**
 * Handles an exception in the request path by responding with 500 and the usual header fields. The connection is closed if a
 * response has already begun, or if writing the 500 fails too.
 */
async function failForBug(exchange: Exchange, stations: Stations): Promise<void> {
  const { res } = exchange;
  try {
    if (!res.hasBegun) {
      const charged = isCharged(exchange) ? exchange : await chargeAddress(exchange, stations);
      await end(refused(charged, { code: 'internal' }), stations);
      return;
    }
  } catch (bug) {
    stations.reportBug(bug, exchange);
  }
  markFailed(exchange, 'internal');
  res.destroy();
}

function isCharged(exchange: Exchange): exchange is Charged {
  return exchange.decision !== undefined;
}
