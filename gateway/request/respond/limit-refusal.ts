import type { BucketDecision, Decision, Window } from '../../shared/model.ts';
import { rememberLast } from '../../shared/structures/remember-last.ts';
import { secondsUntil } from './rate-limit-fields.ts';
import type { Refusal } from './refusal-response.ts';

/** Makes the refusal of a request with a valid key. The message states the used-up limit or the ban, and when to retry. */
export const limitRefusal = rememberLast((decision: Exclude<Decision, { kind: 'admitted' }>): Refusal => {
  const { rateLimit, retryAtMs } = decision;
  const seconds = secondsUntil(retryAtMs, rateLimit.nowMs);
  const fields = ['Retry-After', String(seconds)];
  switch (decision.kind) {
    case 'refused':
      return { code: 'rate_limited', message: `${spent(rateLimit.inForce)} Retry in ${seconds} s.`, fields };
    case 'banned': {
      const until = new Date(Math.ceil((rateLimit.ban?.untilMs ?? retryAtMs) / 1000) * 1000).toISOString();
      const message = `The API key is banned until ${until}, because it kept sending after 429. Retry in ${seconds} s.`;
      return { code: 'key_banned', message, fields };
    }
    case 'unavailable':
      return { code: 'store_unavailable', fields };
  }
});

function spent({ name, limit }: Window): string {
  return limit === 1
    ? `The one request of this ${name} is used.`
    : `All ${limit} requests of this ${name} are used.`;
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
