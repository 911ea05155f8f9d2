/** The end of a secret, as `X-Key-Expires` announces it. */
export interface KeyExpiry {
  /** The secret is valid before this instant, epoch ms. */
  readonly atMs: number;
  /** Responses to this secret have the field from this instant, epoch ms. */
  readonly announcedFromMs: number;
  /** The value of the field: an IMF-fixdate (RFC 9110 §5.6.7), as in `Date` and `Sunset`. */
  readonly date: string;
}

/** Two weeks: time to notice the field, to ask for a new secret and to distribute it. */
const announcedBeforeMs = 14 * 86_400_000;

/** @param expiresMs Infinity when the secret never expires */
export function keyExpiryOf(expiresMs: number): KeyExpiry | undefined {
  if (expiresMs === Number.POSITIVE_INFINITY) return undefined;
  const announcedFromMs = expiresMs - announcedBeforeMs;
  return { atMs: expiresMs, announcedFromMs, date: new Date(expiresMs).toUTCString() };
}
