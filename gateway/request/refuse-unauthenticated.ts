import { isIP } from 'node:net';
import type { BucketDecision } from '../shared/model.ts';
import type { Caller } from './authenticate/authenticate-key.ts';
import { type Ending, refused } from './end-exchange.ts';
import { type Charged, type Exchange, writable } from './exchange.ts';
import { bucketRefusal } from './respond/limit-refusal.ts';
import type { Refusal } from './respond/refusal-response.ts';
import type { KnownKey } from './snapshot.ts';
import type { Stations } from './stations.ts';

type RefusedCaller = Extract<Caller<KnownKey>, { kind: 'refused' }>;

/** Charges a request without a valid key to the bucket of the client's address. */
export async function chargeAddress<Stage extends Exchange>(
  exchange: Stage,
  { limiter }: Pick<Stations, 'limiter'>,
): Promise<Stage & Charged & { readonly decision: BucketDecision }> {
  const { address, snapshot } = exchange;
  const { perMinute } = snapshot.settings.addressBucket;
  const decision = await limiter.chargeAddress(address, perMinute);
  writable(exchange).decision = decision;
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
  if (caller.kind === 'unread') return refuseUnread(exchange, stations);
  if (caller.code !== 'missing_key') writable(exchange).invalidSecret = caller.presented;
  const charged = await chargeAddress(exchange, stations);
  return charged.decision.kind === 'counted'
    ? refused(charged, unauthenticatedRefusal(caller.code, exchange.address))
    : refused(charged, bucketRefusal(charged.decision, 'requests without a valid API key from this address'));
}

/** Makes the refusal. It names the client's address if the key does not allow it, because a client behind proxies may not know it. */
function unauthenticatedRefusal(code: RefusedCaller['code'], address: string): Refusal {
  if (code !== 'address_not_allowed' || isIP(address) === 0) return { code };
  return { code, message: `The API key may not be used from the address ${address}.` };
}

/** Refuses a request with 503 because its key cannot be read. The client's address is charged, but a used-up bucket causes no 429. */
export async function refuseUnread(exchange: Exchange, stations: Stations): Promise<Ending> {
  const charged = await chargeAddress(exchange, stations);
  return refused(charged, { code: 'store_unavailable', fields: ['Retry-After', '1'] });
}
