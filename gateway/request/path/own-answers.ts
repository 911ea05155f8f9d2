import { readKeyMembers } from '../../capabilities/interfaces/join-parts.ts';
import { changesAfter } from '../../keys/plans.ts';
import { addressGroup } from '../../shared/addresses/address-group.ts';
import type { WholeResponse } from '../../shared/errors.ts';
import {
  type Authenticated,
  asMutable,
  authenticate,
  type Charged,
  type Screened,
  withResults,
} from '../exchange.ts';
import type { HolderPart } from '../pages/holder-page.ts';
import { jsonPage, limitsView } from '../pages/limits-view.ts';
import { isPageMethod, type OwnPage, pageMethods, wantsPage } from '../pages/own-pages.ts';
import type { ServedFile } from '../pages/served-file.ts';
import { preflightFields } from '../respond/cors-fields.ts';
import { bucketRefusal, limitRefusal } from '../respond/limit-refusal.ts';
import type { OfferedOperation } from '../route/operation-table.ts';
import type { Stations } from '../stations.ts';
import { authenticateRequest } from './authenticate-request.ts';
import { answered, type Ending, refused } from './end-exchange.ts';
import { deprecatedCallsOf, usageOf } from './holder-answers.ts';
import { answerLeakReport } from './leak-report.ts';
import { refuseUnauthenticated } from './refuse-unauthenticated.ts';
import { rotateOwnSecret } from './rotate-secret.ts';

/** Responds to a CORS preflight. A preflight has no key, so it is charged to the client's address. */
export async function answerPreflight(exchange: Screened, { limiter, bounds }: Stations): Promise<Ending> {
  const { address, req } = exchange;
  const decision = await limiter.chargePreflight(address);
  const charged = withResults(exchange, { decision });
  if (decision.kind === 'refused') {
    return refused(charged, bucketRefusal(decision, 'CORS preflights from this address'));
  }
  const fields = preflightFields(req, bounds.preflightMaxAgeSeconds);
  return answered(charged, { status: 204, fields, body: '' });
}

/**
 * Responds to a request at the path of one of the gateway's own pages. Only the data of a key needs a key.
 *
 * @param offered the operation that also has this path. Without an API document, the only operation has every path
 */
export async function answerPage(
  exchange: Screened,
  page: OwnPage,
  offered: OfferedOperation | undefined,
  stations: Stations,
): Promise<Ending> {
  switch (page.kind) {
    case 'public':
      return answerPublicPage(exchange, page.file, stations);
    case 'leaks':
      return answerLeakReport(exchange, stations);
    case 'holder': {
      if (page.page !== undefined && wantsPage(exchange.req)) {
        return answerPublicPage(exchange, page.page, stations);
      }
      asMutable(exchange).offered = offered;
      const caller = await authenticateRequest(exchange, stations);
      if (caller.kind !== 'authenticated') return refuseUnauthenticated(exchange, stations, caller);
      return answerHolder(authenticate(exchange, caller.key), page.part, stations);
    }
  }
}

/** Serves a public file. The request needs no key and is charged to the client's address. */
async function answerPublicPage(
  exchange: Screened,
  file: ServedFile,
  { limiter, unreadPages }: Stations,
): Promise<Ending> {
  const { address, req } = exchange;
  const decision = await limiter.chargeDocs(address);
  const charged = withResults(exchange, { decision });
  if (decision.kind === 'refused') {
    return refused(charged, bucketRefusal(decision, 'requests for pages from this address'));
  }
  if (!isPageMethod(req.method)) return refuseMethod(charged);
  const response = await file.respond(req.headers);
  return answerUnlessUnread(charged, response, unreadPages);
}

/** Sends the response, or a 429 if this address has too many unread octets of earlier responses. */
function answerUnlessUnread(
  exchange: Charged,
  response: WholeResponse,
  unreadPages: Stations['unreadPages'],
): Ending {
  const { address, req, res } = exchange;
  if (!res.isAnswerable) return { kind: 'client_gone', exchange };
  const bytes = req.method === 'HEAD' ? 0 : response.body.length;
  if (unreadPages.hold({ holder: addressGroup(address), bytes, res })) return answered(exchange, response);
  const message = 'This address has too many unread responses. Retry in 1 s.';
  return refused(exchange, { code: 'rate_limited', message, fields: ['Retry-After', '1'] });
}

/** Serves data of the calling key, even if the key is banned. The request is charged to a separate bucket, not to the quota. */
async function answerHolder(exchange: Authenticated, part: HolderPart, stations: Stations): Promise<Ending> {
  const { limiter, unreadPages } = stations;
  let { key } = exchange;
  const decision = await limiter.chargeLimits(key.id);
  const charged = withResults(exchange, { decision });
  if (decision.kind === 'refused') {
    return refused(charged, bucketRefusal(decision, 'requests for the limits of this API key'));
  }
  const { method } = exchange.req;
  if (part === 'rotate' && method !== 'POST') return refuseMethod(charged, 'POST');
  if (part !== 'rotate' && !isPageMethod(method)) return refuseMethod(charged);
  // The key is read again, because the cached key may be outdated. The limiter detects an outdated key only for requests that a quota
  // counts.
  if (key.generation !== undefined) await stations.directory?.readAgain(key.id);
  else await stations.leaks.blocked.read();
  const caller = await authenticateRequest(exchange, stations);
  if (caller.kind !== 'authenticated') {
    withResults(exchange, { key: undefined });
    return refuseUnauthenticated(exchange, stations, caller);
  }
  ({ key } = caller);
  const own = withResults(charged, { key });
  if (part === 'limits') return answerLimits(own, stations);
  const data = await dataOf[part](own, stations);
  if (data.kind === 'refused') return refused(charged, data.refusal);
  const response = jsonPage(data.value);
  // Only this response contains the new secret, so no later check may refuse it.
  return part === 'rotate' ? answered(charged, response) : answerUnlessUnread(charged, response, unreadPages);
}

const dataOf = { usage: usageOf, deprecated: deprecatedCallsOf, rotate: rotateOwnSecret };

async function answerLimits(exchange: Authenticated, { limiter, parts }: Stations): Promise<Ending> {
  const { key, snapshot } = exchange;
  const [read, [members = {}]] = await Promise.all([limiter.readOwn(key), readKeyMembers(parts, [key.id])]);
  if (read.kind === 'unavailable')
    return refused(withResults(exchange, { decision: read }), limitRefusal(read, 'request'));
  const { status, source } = read;
  const counted = { kind: 'counted', rateLimit: status.rateLimit, source } as const;
  const plan = snapshot.settings.plans.get(key.plan);
  const changes = plan === undefined ? [] : changesAfter(plan, status.rateLimit.nowMs);
  return answered(
    withResults(exchange, { decision: counted }),
    jsonPage(
      limitsView(key, status, {
        changes,
        members,
        expiresMs: key.expiry?.atMs,
        canRotate: canRotate(exchange),
      }),
    ),
  );
}

/**
 * Adds `Vary` to a response at a path that also has an HTML page. Without `Vary`, a cache could send the page to a program, or JSON to a
 * browser.
 */
export function varying(page: OwnPage, ending: Ending): Ending {
  if (page.kind !== 'holder' || page.page === undefined) return ending;
  switch (ending.kind) {
    case 'answered': {
      const { response } = ending;
      return { ...ending, response: { ...response, fields: [...response.fields, ...varyFields] } };
    }
    case 'refused': {
      const { refusal } = ending;
      return { ...ending, refusal: { ...refusal, fields: [...(refusal.fields ?? []), ...varyFields] } };
    }
    default:
      return ending;
  }
}

/** The request fields that decide whether `limitsPath` responds with the page or with JSON. */
const varyFields = ['Vary', 'Accept, Authorization'];

/** Whether the holder can get a new secret. The key must be in the directory, and the configuration must allow new secrets for holders. */
function canRotate({ key, snapshot }: Authenticated): boolean {
  return snapshot.settings.selfService.rotate && key.generation !== undefined;
}

function refuseMethod(exchange: Charged, allow = pageMethods): Ending {
  return refused(exchange, { code: 'method_not_allowed', fields: ['Allow', allow] });
}
