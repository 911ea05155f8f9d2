import { dayMs } from '../../shared/words/figures.js';

/** The expiry of a secret, which `X-Key-Expires` announces. */
export interface KeyExpiry {
  /** Epoch ms. */
  readonly atMs: number;
  /** The time from which responses to requests with this secret have `X-Key-Expires`, epoch ms. */
  readonly announcedFromMs: number;
  /** The value of `X-Key-Expires`: an IMF-fixdate (RFC 9110 §5.6.7), as in `Date` and `Sunset`. */
  readonly date: string;
}

/** The announcement starts two weeks before the expiry, so that the client's team has time to get and deploy a new secret. */
const announcedBeforeMs = 14 * dayMs;

/** @param expiresMs Infinity when the secret never expires */
export function keyExpiryOf(expiresMs: number): KeyExpiry | undefined {
  if (expiresMs === Number.POSITIVE_INFINITY) return undefined;
  const announcedFromMs = expiresMs - announcedBeforeMs;
  return { atMs: expiresMs, announcedFromMs, date: new Date(expiresMs).toUTCString() };
}
