import type { BucketDecision } from '../shared/model.ts';
import type { Caller } from './authenticate/authenticate-key.ts';
import { type Ending, refused } from './end-exchange.ts';
import { type Charged, type Exchange, writable } from './exchange.ts';
import { bucketRefusal } from './respond/limit-refusal.ts';
import type { KnownKey } from './snapshot.ts';
import type { Stations } from './stations.ts';

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

/** Refuses a request without a valid key. The status is 429 when the bucket of the client's address is used up. */
export async function refuseUnauthenticated(
  exchange: Exchange,
  stations: Stations,
  caller: Exclude<Caller<KnownKey>, { kind: 'authenticated' }>,
): Promise<Ending> {
  if (caller.kind === 'unread') return refuseUnread(exchange, stations);
  if (caller.code === 'invalid_key') writable(exchange).invalidSecret = caller.presented;
  const charged = await chargeAddress(exchange, stations);
  return charged.decision.kind === 'counted'
    ? refused(charged, { code: caller.code })
    : refused(charged, bucketRefusal(charged.decision, 'requests without a valid API key from this address'));
}

/** Refuses a request with 503 even when the address bucket is used up, because its key may be valid. Charges the address. */
export async function refuseUnread(exchange: Exchange, stations: Stations): Promise<Ending> {
  const charged = await chargeAddress(exchange, stations);
  return refused(charged, { code: 'store_unavailable', fields: ['Retry-After', '1'] });
}
