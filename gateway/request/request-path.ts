import type { KeyDirectory } from '../keys/directory/key-directory.ts';
import { addressGroup } from '../shared/address-group.ts';
import type { Rejection } from '../shared/errors.ts';
import { type ErrorCode, errors, type WholeResponse } from '../shared/errors.ts';
import type { AtTurnEnd } from '../shared/event-loop-batch.ts';
import type { BucketDecision, Decision, Operation } from '../shared/model.ts';
import type { Bounds } from '../shared/timeouts-and-sizes.ts';
import type { UsageRecorder } from '../usage/recorder.ts';
import { type ClientOrigin, clientOrigin } from './authenticate/client-origin.ts';
import type { Identity } from './authenticate/identify-key.ts';
import { addressOf, type Exchange, isOverTls, originFields } from './exchange.ts';
import type { TunnelOpener } from './forward/forward-types.ts';
import type { Forwarder, ForwardOutcome } from './forward/forwarder.ts';
import type { Limiter } from './limit/limiter.ts';
import { type ScreenBounds, type ScreenedRequest, screenRequest } from './listen/screen-request.ts';
import { limitsPage } from './pages/limits-page.ts';
import { isPageMethod, pageMethods } from './pages/own-pages.ts';
import type { ServedFile } from './pages/served-file.ts';
import type { UnreadPages } from './pages/unread-pages.ts';
import { identify, type Presented, readKey } from './read-key.ts';
import { commonFields } from './respond/common-fields.ts';
import { corsFields, isPreflight, preflightFields } from './respond/cors-fields.ts';
import { limitRefusal } from './respond/limit-refusal.ts';
import { secondsUntil } from './respond/rate-limit-fields.ts';
import { type Refusal, refusalResponse } from './respond/refusal-response.ts';
import { isGone, matchOperation, mayCall } from './route/operation-table.ts';
import type { KnownKey } from './snapshot.ts';

/** The stations that have state, and what else the path needs beside pure functions. */
export interface Stations {
  readonly limiter: Limiter;
  readonly forwarder: Forwarder;
  /** Absent: all keys are in the configuration. */
  readonly directory?: Pick<KeyDirectory, 'lookUp' | 'readAgain' | 'drop'> | undefined;
  readonly atTurnEnd: AtTurnEnd;
  readonly unreadPages: UnreadPages;
  /** Absent: nothing is recorded. */
  readonly usage?: Pick<UsageRecorder, 'decided'> | undefined;
  readonly bounds: ScreenBounds & Pick<Bounds, 'preflightMaxAgeSeconds' | 'directoryRereadsMax'>;
  /** The gateway's clock, epoch ms. Limits are decided on the store's. */
  readonly nowMs: () => number;
  /** Each is called once for every exchange, when it is over. */
  readonly records: readonly ((exchange: Exchange) => void)[];
  /** Called with every exception in the path. */
  readonly reportBug: (error: unknown, exchange: Exchange) => void;
}

/**
 * How the path ends: the upstream's response has been written; a response of the gateway's own, or an error, is still to be
 * written; or the client has gone.
 */
type Ending =
  | { readonly kind: 'forwarded' }
  | ({ readonly kind: 'answered' } & WholeResponse)
  | ({ readonly kind: 'refused' } & Refusal)
  | { readonly kind: 'client_gone' };

/** Serves one exchange, from its arrival to its record in the log. Never rejects. */
export async function serveExchange(exchange: Exchange, stations: Stations): Promise<void> {
  try {
    const ending = await travel(exchange, stations);
    await end(exchange, stations, ending);
  } catch (bug) {
    stations.reportBug(bug, exchange);
    await refuseForBug(exchange, stations);
  } finally {
    record(exchange, stations);
  }
}

async function end(exchange: Exchange, stations: Stations, ending: Ending): Promise<void> {
  switch (ending.kind) {
    case 'forwarded':
      return;
    case 'answered':
      exchange.status = ending.status;
      return answer(exchange, stations, () => ({
        ...ending,
        fields: [...gatewayFields(exchange), ...ending.fields],
      }));
    case 'refused':
      return refuse(exchange, stations, ending);
    case 'client_gone':
      markClientGone(exchange);
  }
}

/** The recording is last and always happens. An exception in one record has no consequence for the others. */
function record(exchange: Exchange, stations: Stations): void {
  exchange.endedMs = performance.now();
  for (const write of stations.records) {
    try {
      write(exchange);
    } catch (bug) {
      stations.reportBug(bug, exchange);
    }
  }
}

/**
 * THE path of a request, from top to bottom. The operation is matched early, since every later response carries its
 * deprecation fields. A path or method that did not match is refused only after key and limits: without a key nobody learns
 * which paths exist, and every request of a valid key is charged.
 */
async function travel(exchange: Exchange, stations: Stations): Promise<Ending> {
  const { arrival, req, res, snapshot } = exchange;
  const { settings } = snapshot;
  exchange.origin = clientOrigin(originFields(exchange), snapshot.trustedProxies);

  // A rejection of the parser is treated like a refusal of the screen.
  const screened =
    res.rejection === undefined
      ? screenRequest(req, stations.bounds, arrival.kind === 'upgrade')
      : refusedBy(res.rejection);
  if (screened.kind === 'refused') {
    // Charged to the address. The status stays that of the fault, also when the address has nothing left.
    exchange.endsConnection = true;
    await countOnAddress(exchange, stations);
    return screened;
  }
  exchange.path = screened.path;

  if (isPreflight(req, snapshot.corsOrigins)) return answerPreflight(exchange, stations);

  // The gateway's own pages. No operation has the path of one: the configuration has been checked for that.
  const page = snapshot.pages.get(screened.path);
  if (page?.kind === 'public') return answerPublicPage(exchange, stations, page.file);

  const match = matchOperation(snapshot.operations, req.method ?? '', screened.path);
  if (match.kind === 'matched') exchange.offered = match.offered;

  let identity = snapshot.identifyKey(screened.authorization, stations.nowMs());
  if (identity.kind === 'unread')
    identity = await readKey(presentedBy(exchange, screened), identity, stations);
  if (identity.kind !== 'identified') return refuseUnidentified(exchange, stations, identity);
  let { key } = identity;
  exchange.key = key;

  if (page?.kind === 'limits') return answerLimits(exchange, stations, screened, key);

  let decision = await stations.limiter.decide(key, settings.bans);
  if (decision.kind === 'stale') {
    const again = await decideAgain(exchange, stations, screened, key);
    if (again.kind !== 'decided') return again;
    ({ key, decision } = again);
  }
  exchange.decision = decision;
  exchange.decidedMs = performance.now();
  stations.usage?.decided(key.id, decision, addressOf(exchange), key.digestStart);
  if (decision.kind !== 'admitted') return { kind: 'refused', ...limitRefusal(decision) };

  if (match.kind === 'not_found') return { kind: 'refused', code: 'not_found' };
  if (match.kind === 'method_not_allowed') {
    return { kind: 'refused', code: 'method_not_allowed', fields: ['Allow', match.allow] };
  }
  if (!mayCall(key, match.offered.operation)) {
    return { kind: 'refused', code: 'operation_not_allowed' };
  }
  if (isGone(match.offered.operation, stations.nowMs())) return { kind: 'refused', code: 'gone' };

  return forward(exchange, stations, screened);
}

function presentedBy(
  exchange: Exchange,
  { authorization }: Pick<ScreenedRequest, 'authorization'>,
): Presented {
  return { snapshot: exchange.snapshot, authorization, address: addressOf(exchange) };
}

/** The key was changed after it was read: it is read once more, and decided as it is now. */
async function decideAgain(
  exchange: Exchange,
  stations: Stations,
  screened: Pick<ScreenedRequest, 'authorization'>,
  staleKey: KnownKey,
): Promise<Ending | { readonly kind: 'decided'; readonly key: KnownKey; readonly decision: Decision }> {
  const { snapshot } = exchange;
  let key = staleKey;
  exchange.key = undefined;
  for (let reads = 0; reads < stations.bounds.directoryRereadsMax; reads++) {
    stations.directory?.drop(key.id, key.generation);
    const identity = await identify(presentedBy(exchange, screened), stations);
    if (identity.kind !== 'identified') return refuseUnidentified(exchange, stations, identity);
    ({ key } = identity);
    const decision = await stations.limiter.decide(key, snapshot.settings.bans);
    if (decision.kind === 'stale') continue;
    exchange.key = key;
    return { kind: 'decided', key, decision };
  }
  return refuseUnread(exchange, stations);
}

/** A preflight comes without a key, and is charged to no key: the request that follows it has one. */
async function answerPreflight(exchange: Exchange, { limiter, bounds }: Stations): Promise<Ending> {
  const decision = await limiter.chargePreflight(addressOf(exchange));
  exchange.decision = decision;
  if (decision.kind === 'refused') {
    return { kind: 'refused', ...bucketRefusal(decision, 'CORS preflights from this address') };
  }
  const fields = preflightFields(exchange.req, bounds.preflightMaxAgeSeconds);
  return { kind: 'answered', status: 204, fields, body: '' };
}

/** The API reference comes without a key, and is charged to no key. */
async function answerPublicPage(exchange: Exchange, stations: Stations, file: ServedFile): Promise<Ending> {
  const { req, res } = exchange;
  const decision = await stations.limiter.chargeDocs(addressOf(exchange));
  exchange.decision = decision;
  if (decision.kind === 'refused') {
    const what = 'requests for the API reference from this address';
    return { kind: 'refused', ...bucketRefusal(decision, what) };
  }
  if (!isPageMethod(req.method)) return pageIsRead;
  const response = await file.respond(req.headers);
  if (!isAnswerable(exchange)) return { kind: 'client_gone' };
  const bytes = req.method === 'HEAD' ? 0 : response.body.length;
  if (!stations.unreadPages.hold({ holder: addressGroup(addressOf(exchange)), bytes, res })) {
    const message = 'Too many responses that this address has not read to their end. Retry in 1 s.';
    return { kind: 'refused', code: 'rate_limited', message, fields: ['Retry-After', '1'] };
  }
  return { kind: 'answered', ...response };
}

const pageIsRead: Ending = { kind: 'refused', code: 'method_not_allowed', fields: ['Allow', pageMethods] };

/** What a key reads of itself is charged to a bucket of its own and to no quota; a banned key may read it too. */
async function answerLimits(
  exchange: Exchange,
  stations: Stations,
  screened: Pick<ScreenedRequest, 'authorization'>,
  knownKey: KnownKey,
): Promise<Ending> {
  const { limiter } = stations;
  let key = knownKey;
  const looks = await limiter.chargeLimits(key.id);
  exchange.decision = looks;
  if (looks.kind === 'refused') {
    return { kind: 'refused', ...bucketRefusal(looks, 'looks at the limits of this API key') };
  }
  if (!isPageMethod(exchange.req.method)) return pageIsRead;
  if (key.generation !== undefined) {
    // Nothing is decided, so nothing would show that the key was changed since it was read.
    await stations.directory?.readAgain(key.id);
    const identity = await identify(presentedBy(exchange, screened), stations);
    if (identity.kind !== 'identified') {
      exchange.key = undefined;
      return refuseUnidentified(exchange, stations, identity);
    }
    ({ key } = identity);
    exchange.key = key;
  }
  const read = await limiter.readOwn(key);
  if (read.kind === 'unavailable') {
    exchange.decision = read;
    return { kind: 'refused', ...limitRefusal(read) };
  }
  exchange.decision = { kind: 'counted', rateLimit: read.status.rateLimit, source: read.source };
  return { kind: 'answered', ...limitsPage(key, read.status, key.expiry?.atMs) };
}

/** The refusal for a fault that the parser found, in a request or in its body. */
function refusedBy(rejection: Rejection): { readonly kind: 'refused' } & Refusal {
  return { kind: 'refused', code: rejection.code, message: rejection.message };
}

/** Whose secret it is is not known, or it is nobody's. */
function refuseUnidentified(
  exchange: Exchange,
  stations: Stations,
  identity: Exclude<Identity<KnownKey>, { kind: 'identified' }>,
): Promise<Ending> {
  if (identity.kind === 'unread') return refuseUnread(exchange, stations);
  if (identity.code === 'invalid_key') exchange.invalidSecret = identity.presented;
  return refuseStranger(exchange, stations, { code: identity.code });
}

/** Charged to the address too, but it hears of the outage also when it has nothing left: its key may be valid. */
async function refuseUnread(exchange: Exchange, stations: Stations): Promise<Ending> {
  await countOnAddress(exchange, stations);
  return { kind: 'refused', code: 'store_unavailable', fields: ['Retry-After', '1'] };
}

/** A request without a valid key is charged to its address, and answered 429 once that has nothing left. */
async function refuseStranger(exchange: Exchange, stations: Stations, refusal: Refusal): Promise<Ending> {
  const decision = await countOnAddress(exchange, stations);
  if (decision.kind === 'counted') return { kind: 'refused', ...refusal };
  const what = 'requests without a valid API key from this address';
  return { kind: 'refused', ...bucketRefusal(decision, what) };
}

function bucketRefusal({ rateLimit }: BucketDecision, what: string): Refusal {
  const seconds = secondsUntil(rateLimit.inForce.resetMs, rateLimit.nowMs);
  return {
    code: 'rate_limited',
    message: `Too many ${what}. Retry in ${seconds} s.`,
    fields: ['Retry-After', String(seconds)],
  };
}

async function countOnAddress(exchange: Exchange, { limiter }: Stations): Promise<BucketDecision> {
  const { perMinute } = exchange.snapshot.settings.addressBucket;
  const decision = await limiter.chargeAddress(addressOf(exchange), perMinute);
  exchange.decision = decision;
  return decision;
}

async function forward(
  exchange: Exchange,
  { forwarder }: Stations,
  screened: Pick<ScreenedRequest, 'authorization'>,
): Promise<Ending> {
  const { req, res, snapshot, origin, arrival, offered } = exchange;
  if (origin === undefined) throw new Error('an exchange is forwarded before its origin is known');
  if (offered === undefined) throw new Error('an exchange is forwarded before its operation is known');
  const request = {
    upstream: offered.operation.upstream,
    req,
    res,
    holder: exchange.key?.id ?? '',
    requestFields: identityFields(exchange, origin),
    keepForwarded: origin.trustedPeer,
    responseFields: gatewayFields(exchange),
    bodyBytesMax: snapshot.settings.bodyBytesMax,
  };
  const outcome =
    arrival.kind === 'upgrade'
      ? await forwarder.forwardUpgrade({
          ...request,
          socket: arrival.socket,
          head: arrival.head,
          opener: tunnelOpener(exchange, screened, offered.operation),
        })
      : await forwarder.forward(request);
  exchange.upstream = outcome;
  return endingOf(outcome, exchange);
}

/** Of the snapshot only the operation: a WebSocket may stay open for days, and would keep all of an old one in memory. */
function tunnelOpener(
  exchange: Exchange,
  { authorization }: Pick<ScreenedRequest, 'authorization'>,
  operation: Operation,
): TunnelOpener {
  const { id: requestId, key } = exchange;
  return { requestId, keyId: key?.id ?? '', address: addressOf(exchange), authorization, operation };
}

function endingOf(outcome: ForwardOutcome, exchange: Exchange): Ending {
  switch (outcome.kind) {
    case 'client_gone':
      exchange.cause = outcome.cause;
      return outcome;
    case 'forwarded':
      exchange.status = outcome.status;
      if (outcome.status >= 400) exchange.fault = outcome.status >= 500 ? 'upstream' : 'client';
      return { kind: 'forwarded' };
    case 'failed': {
      exchange.cause = outcome.cause;
      if (!outcome.headersSent) {
        const { rejection } = exchange.res;
        if (rejection !== undefined) return refusedBy(rejection);
        return { kind: 'refused', code: outcome.code, fields: retryFields(outcome) };
      }
      exchange.status = exchange.res.statusCode;
      exchange.errorCode = outcome.code;
      exchange.fault = errors[outcome.code].fault;
      return { kind: 'forwarded' };
    }
  }
}

function retryFields({ retryAfterSeconds }: { readonly retryAfterSeconds?: number }): readonly string[] {
  return retryAfterSeconds === undefined ? [] : ['Retry-After', String(retryAfterSeconds)];
}

/** The request fields that tell the upstream who calls: flat name, value, … */
function identityFields({ id, key }: Exchange, origin: ClientOrigin): string[] {
  return [
    'X-Request-Id',
    id,
    'X-Key-Id',
    key?.id ?? '',
    'X-Plan',
    key?.plan ?? '',
    'X-Forwarded-For',
    origin.forwardedFor,
    'X-Forwarded-Host',
    origin.forwardedHost,
    'X-Forwarded-Proto',
    origin.forwardedProto,
    'Via',
    '1.1 tollgate',
  ];
}

function gatewayFields({ id, req, snapshot, key, decision, offered }: Exchange): string[] {
  if (decision === undefined) throw new Error('a response is made before the limits were decided');
  return commonFields(id, {
    rateLimit: decision.rateLimit,
    policyText: key?.policyText,
    keyExpiry: key?.expiry,
    operationFields: offered?.fields,
    corsFields: corsFields(req.headers.origin, snapshot.corsOrigins),
    // A response without TLS must not have it (RFC 6797 §7.2).
    hstsFields: snapshot.hstsFields && isOverTls(req) ? snapshot.hstsFields : undefined,
  });
}

async function refuse(exchange: Exchange, stations: Stations, refusal: Refusal): Promise<void> {
  markRefused(exchange, refusal.code);
  await answer(exchange, stations, () => refusalResponse(refusal, gatewayFields(exchange)));
}

/** Writes a response of the gateway's own, together with the others of this turn of the event loop. */
async function answer(exchange: Exchange, { atTurnEnd }: Stations, make: () => WholeResponse): Promise<void> {
  const { req, res, endsConnection } = exchange;
  await new Promise<void>(atTurnEnd);
  if (isAnswerable(exchange)) {
    if (endsConnection || !req.complete) res.shouldKeepAlive = false;
    res.answer(make());
  } else markClientGone(exchange);
}

function markRefused(exchange: Exchange, code: ErrorCode): void {
  const { status, fault } = errors[code];
  exchange.status = status;
  exchange.errorCode = code;
  exchange.fault = fault;
}

/** 499 is nginx's status for a client that went away before its response; neither the gateway nor the upstream is at fault. */
function markClientGone(exchange: Exchange): void {
  const { rejection } = exchange.res;
  exchange.status = rejection === undefined ? 499 : errors[rejection.code].status;
  exchange.errorCode = rejection?.code;
  exchange.fault = 'client';
}

function isAnswerable({ res }: Exchange): boolean {
  return !res.destroyed && res.socket?.writable === true;
}

/**
 * The last resort: after a bug the client must not wait in vain. It is answered 500 with the fields of every response. Where
 * a response has begun, or where writing the 500 fails too, the connection is cut.
 */
async function refuseForBug(exchange: Exchange, stations: Stations): Promise<void> {
  const { res } = exchange;
  try {
    if (!res.hasBegun) {
      if (exchange.decision === undefined) await countOnAddress(exchange, stations);
      await refuse(exchange, stations, { code: 'internal' });
      return;
    }
  } catch (bug) {
    stations.reportBug(bug, exchange);
  }
  markRefused(exchange, 'internal');
  res.destroy();
}
