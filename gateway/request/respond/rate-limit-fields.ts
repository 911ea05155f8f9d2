import { type RateLimitState, shownWindow, type Window } from '../../shared/model.ts';
import { secondsUntil } from '../../shared/schema/dates-and-durations.ts';
import { rememberLast } from '../../shared/structures/remember-last.ts';
import { policyName } from '../../shared/words/limit-names.js';

/** Returns the value of `RateLimit-Policy` for the windows of one key. */
export type PolicyText = (windows: readonly Window[]) => string;

/** Caches the value of `RateLimit-Policy` for one key. Only a grant, or a month of a different length, changes it. */
export function createPolicyText(concurrent?: number): PolicyText {
  let text = '';
  let made: readonly Window[] = [];
  return (windows) => {
    if (!haveSamePolicy(windows, made)) {
      text = policyOf(windows);
      if (concurrent !== undefined) text += `, "concurrent";q=${concurrent};qu="concurrent-requests"`;
      made = windows;
    }
    return text;
  };
}

function haveSamePolicy(windows: readonly Window[], others: readonly Window[]): boolean {
  if (windows.length !== others.length) return false;
  for (let i = 0; i < windows.length; i++) {
    const window = windows[i];
    const other = others[i];
    if (window?.limit !== other?.limit || window?.windowSeconds !== other?.windowSeconds) return false;
    if (window?.name !== other?.name || window?.group !== other?.group) return false;
  }
  return true;
}

function policyOf(windows: readonly Window[]): string {
  return windows
    .map(
      ({ name, group, limit, windowSeconds }) => `"${policyName(name, group)}";q=${limit};w=${windowSeconds}`,
    )
    .join(', ');
}

/**
 * Makes the rate-limit fields of a response. `X-RateLimit-*` describes the tightest window or the ban. `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-11, not an RFC) list every window, and a ban as a separate policy. Times are rounded up to whole
 * seconds, so that clients never retry too early.
 *
 * @param policyText the cache of the key; undefined without a key
 * @returns a flat list of names and values
 */
export const rateLimitFields = rememberLast(
  (rateLimit: RateLimitState, policyText: PolicyText | undefined): readonly string[] => {
    const { windows, nowMs, ban } = rateLimit;
    const shown = shownWindow(rateLimit);
    let policy = (policyText ?? policyOf)(windows);
    let state = '';
    for (const { name, group, remaining, resetMs } of windows) {
      state += `${state === '' ? '"' : ', "'}${policyName(name, group)}";r=${remaining};t=${secondsUntil(resetMs, nowMs)}`;
    }
    if (ban !== undefined) {
      policy += ', "ban";q=0';
      state += `, "ban";r=0;t=${secondsUntil(ban.untilMs, nowMs)}`;
    }
    return [
      'X-RateLimit-Limit',
      String(shown.limit),
      'X-RateLimit-Remaining',
      String(shown.remaining),
      'X-RateLimit-Reset',
      String(Math.ceil(shown.resetMs / 1000)),
      'RateLimit-Policy',
      policy,
      'RateLimit',
      state,
    ];
  },
);
