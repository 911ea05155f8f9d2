/** The end of a secret, as `X-Key-Expires` announces it. */
export interface KeyExpiry {
  /** The secret is valid before this instant, epoch ms. */
  readonly atMs: number;
  /** From then on every response to this secret carries the field, epoch ms. */
  readonly announcedFromMs: number;
  /** The value of the field, an IMF-fixdate (RFC 9110 §5.6.7): the form of `Date` and `Sunset`, which clients parse already. */
  readonly date: string;
}

/** Two weeks: enough for whoever reads it on a workday to ask for a new secret and to hand it out. */
const announcedBeforeMs = 14 * 86_400_000;

/** @param expiresMs Infinity when the secret never expires */
export function keyExpiryOf(expiresMs: number): KeyExpiry | undefined {
  if (expiresMs === Number.POSITIVE_INFINITY) return undefined;
  const announcedFromMs = expiresMs - announcedBeforeMs;
  return { atMs: expiresMs, announcedFromMs, date: new Date(expiresMs).toUTCString() };
}
