import type { AnswerPage } from '../../capabilities/interfaces/request.ts';
import { addressGroup } from '../../shared/addresses/address-group.ts';
import type { WholeResponse } from '../../shared/errors.ts';
import { type Charged, type Screened, withResults } from '../exchange.ts';
import type { ServedFile } from '../pages/served-file.ts';
import { preflightFields } from '../respond/cors-fields.ts';
import { bucketRefusal } from '../respond/limit-refusal.ts';
import type { Stations } from '../stations.ts';
import { answered, type Ending, refused } from './end-exchange.ts';

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

/** Makes a page that serves a public file. A request needs no key and is charged to the client's address. */
export function answerPublicPage(file: ServedFile): AnswerPage {
  return async (exchange, _, { limiter, unreadPages }) => {
    const { address, req } = exchange;
    const decision = await limiter.chargeDocs(address);
    const charged = withResults(exchange, { decision });
    if (decision.kind === 'refused') {
      return refused(charged, bucketRefusal(decision, 'requests for pages from this address'));
    }
    if (!isPageMethod(req.method)) return refuseMethod(charged);
    const response = await file.respond(req.headers);
    return answerUnlessUnread(charged, response, unreadPages);
  };
}

/** Sends the response, or a 429 if this address has too many unread octets of earlier responses. */
export function answerUnlessUnread(
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

export function isPageMethod(method: string | undefined): boolean {
  return method === 'GET' || method === 'HEAD';
}

const pageMethods = 'GET, HEAD';

export function refuseMethod(exchange: Charged, allow = pageMethods): Ending {
  return refused(exchange, { code: 'method_not_allowed', fields: ['Allow', allow] });
}
