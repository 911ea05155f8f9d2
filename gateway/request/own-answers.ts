import { addressGroup } from '../shared/address-group.ts';
import { authenticateRequest } from './authenticate-request.ts';
import { answered, type Ending, refused } from './end-exchange.ts';
import { type Authenticated, type Charged, found, type Screened } from './exchange.ts';
import { limitsPage } from './pages/limits-page.ts';
import { isPageMethod, pageMethods } from './pages/own-pages.ts';
import type { ServedFile } from './pages/served-file.ts';
import { refuseUnauthenticated } from './refuse-unauthenticated.ts';
import { preflightFields } from './respond/cors-fields.ts';
import { bucketRefusal, limitRefusal } from './respond/limit-refusal.ts';
import type { Stations } from './stations.ts';

/** Responds to a CORS preflight. A preflight has no key, so it is charged to the client's address. */
export async function answerPreflight(exchange: Screened, { limiter, bounds }: Stations): Promise<Ending> {
  const { address, req } = exchange;
  const decision = await limiter.chargePreflight(address);
  const charged = found(exchange, { decision });
  if (decision.kind === 'refused') {
    return refused(charged, bucketRefusal(decision, 'CORS preflights from this address'));
  }
  const fields = preflightFields(req, bounds.preflightMaxAgeSeconds);
  return answered(charged, { status: 204, fields, body: '' });
}

/** Serves a file of the API reference. The request needs no key and is charged to the client's address. */
export async function answerPublicPage(
  exchange: Screened,
  { limiter, unreadPages }: Stations,
  file: ServedFile,
): Promise<Ending> {
  const { address, req, res } = exchange;
  const decision = await limiter.chargeDocs(address);
  const charged = found(exchange, { decision });
  if (decision.kind === 'refused') {
    return refused(charged, bucketRefusal(decision, 'requests for the API reference from this address'));
  }
  if (!isPageMethod(req.method)) return refuseMethod(charged);
  const response = await file.respond(req.headers);
  if (!res.isAnswerable) return { kind: 'client_gone', exchange };
  const bytes = req.method === 'HEAD' ? 0 : response.body.length;
  if (!unreadPages.hold({ holder: addressGroup(address), bytes, res })) {
    const message = 'This address has too many unread responses. Retry in 1 s.';
    return refused(charged, { code: 'rate_limited', message, fields: ['Retry-After', '1'] });
  }
  return answered(charged, response);
}

/** Serves the limits of the calling key, even if it is banned. The request is charged to a separate bucket, not to the quota. */
export async function answerLimits(exchange: Authenticated, stations: Stations): Promise<Ending> {
  const { limiter } = stations;
  let { key } = exchange;
  const decision = await limiter.chargeLimits(key.id);
  const charged = found(exchange, { decision });
  if (decision.kind === 'refused') {
    return refused(charged, bucketRefusal(decision, 'requests for the limits of this API key'));
  }
  if (!isPageMethod(exchange.req.method)) return refuseMethod(charged);
  if (key.generation !== undefined) {
    // The key is read again, because it may have changed. Other requests detect a change only when their limits are decided.
    await stations.directory?.readAgain(key.id);
    const caller = await authenticateRequest(exchange, stations);
    if (caller.kind !== 'authenticated') {
      found(exchange, { key: undefined });
      return refuseUnauthenticated(exchange, stations, caller);
    }
    ({ key } = caller);
    found(exchange, { key });
  }
  const read = await limiter.readOwn(key);
  if (read.kind === 'unavailable') return refused(found(exchange, { decision: read }), limitRefusal(read));
  const { status, source } = read;
  const counted = { kind: 'counted', rateLimit: status.rateLimit, source } as const;
  return answered(found(exchange, { decision: counted }), limitsPage(key, status, key.expiry?.atMs));
}

function refuseMethod(exchange: Charged): Ending {
  return refused(exchange, { code: 'method_not_allowed', fields: ['Allow', pageMethods] });
}
