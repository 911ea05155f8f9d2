import { type Caller, unknownSecret } from '../../../request/authenticate/authenticate-key.ts';
import type { Screened } from '../../../request/exchange.ts';
import { type KnownKey, knownKeyOf } from '../../../request/snapshot.ts';
import { addressGroup } from '../../../shared/addresses/address-group.ts';
import { compileRanges, hasAddress } from '../../../shared/addresses/address-ranges.ts';
import { digestStart } from '../../../shared/secrets.ts';
import { Shares } from '../../../shared/structures/shares.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { Link } from './link-store.ts';
import { type PresentedLink, parseLink } from './link-token.ts';
import { isOpen } from './linked-key.ts';
import type { Links } from './links.ts';

/** The key whose page a link opens, or the refusal of the link. */
type CallerByLink =
  | { readonly kind: 'opened'; readonly key: KnownKey; readonly link: Link }
  | Exclude<Caller<KnownKey>, { kind: 'authenticated' }>;

export type OpenByLink = (exchange: Screened) => Promise<CallerByLink> | undefined;

/**
 * Finds the key of a link. A link opens the page only while the key has a secret that would open it, and only from the addresses from which
 * the key may be used. A refused link counts as an unknown secret, and the client gets the same response for all reasons except the address.
 *
 * A token with a wrong checksum causes no look-up of a link. The look-ups of one client address share the places of this address, and each
 * refused link is charged to the address.
 *
 * @returns a function that returns undefined for a request without the token of a link
 */
export function createOpenByLink(links: Links, bounds: Pick<Bounds, 'linkLookUpsMax'>): OpenByLink {
  const places = new Shares(bounds.linkLookUpsMax);

  return (exchange) => {
    const presented = parseLink(exchange.authorization);
    return presented && lookUp(exchange, presented, addressGroup(exchange.address));
  };

  async function lookUp(exchange: Screened, presented: PresentedLink, holder: string): Promise<CallerByLink> {
    const { digest } = presented;
    if (!places.take(holder, 1)) return { kind: 'unread', digest };
    try {
      return await open(exchange, presented);
    } finally {
      places.give(holder, 1);
    }
  }

  async function open(
    { address, snapshot: { settings } }: Screened,
    { keyId, digest }: PresentedLink,
  ): Promise<CallerByLink> {
    const { store, keyOf } = links;
    const refused = unknownSecret(digest);
    const found = await store?.read(keyId, digest);
    if (found?.kind === 'away') return { kind: 'unread', digest };
    if (found?.link === undefined) return refused;
    const { link, nowMs } = found;
    const of = await keyOf(keyId, settings);
    if (of.kind === 'away') return { kind: 'unread', digest };
    if (of.kind === 'absent' || of.key === undefined || !of.isUsable) return refused;
    if (!isOpen(link, of, nowMs)) return refused;
    const presented = { digestStart: digestStart(digest), keyId };
    const { addresses } = of.key;
    if (addresses !== undefined && !hasAddress(compileRanges(addresses), address)) {
      const status = 'address_not_allowed';
      return { kind: 'refused', code: status, presented: { ...presented, status } };
    }
    const key = knownKeyOf(of.key, { ...presented, expiresMs: Number.POSITIVE_INFINITY });
    return { kind: 'opened', key, link };
  }
}
