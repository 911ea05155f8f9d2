import type { Refusal } from '../../shared/errors.ts';
import type { BucketDecision, Decision, RateLimitState, Window } from '../../shared/model.ts';
import { secondsUntil } from '../../shared/schema/dates-and-durations.ts';
import { rememberLast } from '../../shared/structures/remember-last.ts';
import { per, policyName, windowText } from '../../shared/words/limit-names.js';

/**
 * Makes the refusal of a request with a valid key. The message states the used-up limit or the ban, and when to retry.
 *
 * @param terms.counted the word for what limits count: `unit` if an operation has another cost than 1, otherwise `request`
 * @param terms.showsBanReason whether the reason of a ban by hand is shown
 */
export const limitRefusal = rememberLast((decision: NotAdmitted, terms: RefusalTerms): Refusal => {
  const { rateLimit, retryAtMs } = decision;
  const seconds = secondsUntil(retryAtMs, rateLimit.nowMs);
  const fields = ['Retry-After', String(seconds)];
  switch (decision.kind) {
    case 'refused':
      return {
        code: 'rate_limited',
        message: `${spent(decision, terms.counted)} Retry in ${seconds} s.`,
        fields,
      };
    case 'banned': {
      const until = new Date(Math.ceil((rateLimit.ban?.untilMs ?? retryAtMs) / 1000) * 1000).toISOString();
      const because = banCause(rateLimit.ban?.byHand, terms);
      const message = `The API key is banned until ${until}${because}. Retry in ${seconds} s.`;
      return { code: 'key_banned', message, fields };
    }
    case 'crowded':
      return { code: 'too_many_concurrent', fields };
    case 'unavailable':
      return { code: 'store_unavailable', fields };
  }
});

interface RefusalTerms {
  readonly counted: 'request' | 'unit';
  readonly showsBanReason: boolean;
}

function banCause(
  byHand: NonNullable<RateLimitState['ban']>['byHand'],
  { showsBanReason }: RefusalTerms,
): string {
  if (byHand === undefined) return ', because it kept sending after 429';
  const { reason } = byHand;
  return showsBanReason && reason !== undefined ? ` by the operator: ${reason}` : ' by the operator';
}

type NotAdmitted = Exclude<Decision, { kind: 'admitted' }>;

function spent({ units, rateLimit }: NotAdmitted, counted: 'request' | 'unit'): string {
  if (units === 1) {
    const { name, group, limit } = rateLimit.inForce;
    const window = windowText(policyName(name, group));
    return limit === 1
      ? `The one ${counted} of this ${window} is used.`
      : `All ${limit} ${counted}s of this ${window} are used.`;
  }
  const { name, group, limit, remaining } = lastWithRoom(rateLimit, units);
  const ofGroup = group === undefined ? '' : ` for the group ${group}`;
  return `This request costs ${units} units; ${remaining} of this ${name}'s ${limit}${ofGroup} ${remaining === 1 ? 'is' : 'are'} left.`;
}

/** The full window that resets last. A window is full if it has no room for `units`. */
function lastWithRoom({ windows, inForce }: RateLimitState, units: number): Window {
  const full = windows.filter(({ remaining }) => remaining < units);
  return full.reduce((last, window) => (window.resetMs >= last.resetMs ? window : last), full[0] ?? inForce);
}

/** Makes the refusal of a request that costs more than a limit of its key. */
export function costRefusal(units: number, { windows }: RateLimitState): Refusal {
  const least = windows.reduce((one, other) => (other.limit < one.limit ? other : one));
  const message = `This request costs ${units} units, and the API key may use at most ${least.limit} in ${per(policyName(least.name, least.group))}.`;
  return { code: 'operation_not_allowed', message };
}

/** Makes the refusal for a used-up bucket. @param what the name of the counted requests */
export function bucketRefusal({ rateLimit }: BucketDecision, what: string): Refusal {
  const seconds = secondsUntil(rateLimit.inForce.resetMs, rateLimit.nowMs);
  return {
    code: 'rate_limited',
    message: `Too many ${what}. Retry in ${seconds} s.`,
    fields: ['Retry-After', String(seconds)],
  };
}
