import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { errors, type Refusal } from '../../shared/errors.ts';
import type { BucketDecision } from '../../shared/model.ts';
import { digestStart } from '../../shared/secrets.ts';
import type { Caller } from '../authenticate/authenticate-key.ts';
import { asMutable, type Charged, type Exchange } from '../exchange.ts';
import { bucketRefusal } from '../respond/limit-refusal.ts';
import type { KnownKey } from '../snapshot.ts';
import type { Stations } from '../stations.ts';
import { type Ending, refused } from './end-exchange.ts';

type RefusedCaller = Extract<Caller<KnownKey>, { kind: 'refused' }>;

/** Charges a request without a valid key to the bucket of the client's address. */
export async function chargeAddress<Stage extends Exchange>(
  exchange: Stage,
  { limiter }: Pick<Stations, 'limiter'>,
): Promise<Stage & Charged & { readonly decision: BucketDecision }> {
  const { address, snapshot } = exchange;
  const { perMinute } = snapshot.settings.addressBucket;
  const decision = await limiter.chargeAddress(address, perMinute);
  asMutable(exchange).decision = decision;
  return exchange as Stage & Charged & { readonly decision: BucketDecision };
}

/**
 * Refuses a request that has no valid key, or whose key does not allow the client's address. The status is 429 when the bucket of
 * the client's address is used up.
 */
export async function refuseUnauthenticated(
  exchange: Exchange,
  stations: Stations,
  caller: Exclude<Caller<KnownKey>, { kind: 'authenticated' }>,
): Promise<Ending> {
  if (caller.kind === 'unread') {
    asMutable(exchange).invalidSecret = { status: 'unread', digestStart: digestStart(caller.digest) };
    return refuseUnread(exchange, stations);
  }
  if (caller.code !== 'missing_key') asMutable(exchange).invalidSecret = caller.presented;
  const charged = await chargeAddress(exchange, stations);
  return charged.decision.kind === 'counted'
    ? refused(charged, unauthenticatedRefusal(caller.code, exchange))
    : refused(charged, bucketRefusal(charged.decision, 'requests without a valid API key from this address'));
}

function unauthenticatedRefusal(code: RefusedCaller['code'], exchange: Exchange): Refusal {
  if (code === 'missing_key') return { code, message: missingKeyMessage(exchange) };
  // The response contains the client's address, because a client behind a proxy may not know its own address.
  const { address } = exchange;
  if (code !== 'address_not_allowed' || isIP(address) === 0) return { code };
  return { code, message: `The API key may not be used from the address ${address}.` };
}

/** Header fields in which other gateways and APIs accept a key. */
const foreignFields = [
  'X-API-Key',
  'API-Key',
  'ApiKey',
  'X-ApiKey',
  'X-Api-Token',
  'Api-Token',
  'X-Auth-Token',
  'X-Auth-Key',
  'X-Access-Token',
  'Access-Token',
  'X-Token',
  // Azure, Google, RapidAPI and GitLab.
  'Ocp-Apim-Subscription-Key',
  'X-Goog-Api-Key',
  'X-RapidAPI-Key',
  'Private-Token',
].map((name) => ({ name, field: name.toLowerCase() }));
const foreignParameters =
  /[?&](key|api[_-]?key|api[_-]?token|token|access[_-]?token|auth[_-]?token|subscription-key)=/i;

/**
 * Makes the message for a client that sent its key in the wrong place. The message names the place. It contains only names of
 * `foreignFields` and `foreignParameters`, never a value.
 */
function missingKeyMessage({ req, authorization }: Exchange): string | undefined {
  const sent = authorization === undefined ? foreignPlaceOf(req) : 'Authorization without "Bearer"';
  return sent && `${errors.missing_key.message.slice(0, -1)}, not ${sent}.`;
}

function foreignPlaceOf({ headers, url = '' }: IncomingMessage): string | undefined {
  for (const { name, field } of foreignFields) {
    if (headers[field] !== undefined) return `"${name}: <API_KEY>"`;
  }
  const parameter = foreignParameters.exec(url)?.[1]?.toLowerCase();
  return parameter && `"?${parameter}=<API_KEY>"`;
}

/**
 * Refuses a request with 503 because its key cannot be read. The request is charged to the client's address. A used-up bucket does not
 * change the status.
 */
export async function refuseUnread(exchange: Exchange, stations: Stations): Promise<Ending> {
  const charged = await chargeAddress(exchange, stations);
  return refused(charged, { code: 'store_unavailable', fields: ['Retry-After', '1'] });
}
