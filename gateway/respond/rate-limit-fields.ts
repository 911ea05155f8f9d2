import type { RateLimitState } from '../model.ts';
import { rememberLast } from '../remember-last.ts';

/**
 * The rate-limit fields of a response. The specification's three describe the window in force. Those of the IETF draft
 * (draft-ietf-httpapi-ratelimit-headers-11, not an RFC) list every window, and a ban as a policy of its own. Times are rounded up to whole seconds, so that a client that waits for them is never early.
 *
 * @returns flat name, value, …
 */
export const rateLimitFields = rememberLast(
  ({ inForce, windows, nowMs, banUntilMs }: RateLimitState): readonly string[] => {
    let policy = '';
    let state = '';
    for (const window of windows) {
      const separator = policy === '' ? '"' : ', "';
      policy += `${separator}${window.name}";q=${window.limit};w=${window.windowSeconds}`;
      state += `${separator}${window.name}";r=${window.remaining};t=${secondsUntil(window.resetMs, nowMs)}`;
    }
    if (banUntilMs !== undefined) {
      policy += ', "ban";q=0';
      state += `, "ban";r=0;t=${secondsUntil(banUntilMs, nowMs)}`;
    }
    return [
      'X-RateLimit-Limit',
      String(inForce.limit),
      'X-RateLimit-Remaining',
      String(inForce.remaining),
      'X-RateLimit-Reset',
      String(Math.ceil(inForce.resetMs / 1000)),
      'RateLimit-Policy',
      policy,
      'RateLimit',
      state,
    ];
  },
);

/** Whole seconds from now, rounded up and at least 0: the delta-seconds of `Retry-After` (RFC 9110 §10.2.3). */
export function secondsUntil(instantMs: number, nowMs: number): number {
  return Math.max(0, Math.ceil((instantMs - nowMs) / 1000));
}
