import type { TransportFailure } from '../../transport/target-request.ts';

interface FailedAttempt {
  readonly failure: TransportFailure;
  readonly method: string;
  readonly hasBody: boolean;
  /** The number of attempts of this request that lost their connection, including the current attempt. */
  readonly losses: number;
  /** The number of attempts of this request, including the current attempt. */
  readonly attempts: number;
  readonly attemptsMax: number;
}

/**
 * Whether a failed request may be sent again.
 *
 * A request is always retried if none of its octets can have reached a target.
 *
 * A GET or HEAD without a body is retried once if its reused connection closed before the first octet of the response. The target has
 * probably closed the idle connection. RFC 9110 §9.2.2 forbids retries of methods that are not idempotent. It also advises against a second
 * retry.
 *
 * A request is never retried if it was written on a new connection. The request may have crashed the target. A retry could crash another
 * target.
 */
export function mayRetry({
  failure,
  method,
  hasBody,
  losses,
  attempts,
  attemptsMax,
}: FailedAttempt): boolean {
  if (attempts >= attemptsMax) return false;
  if (failure.reach === 'not_reached') return true;
  return (
    failure.kind === 'lost' &&
    failure.reach === 'unanswered_reused' &&
    losses === 1 &&
    !hasBody &&
    (method === 'GET' || method === 'HEAD')
  );
}

interface RetryPause {
  /** The number of the attempt after the pause; the first attempt is 1. */
  readonly attempt: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** A random number from 0 to less than 1. */
  readonly random: number;
}

/** Returns the pause before a retry, with full jitter. With jitter, requests that failed together are not retried together. */
export function retryPauseMs({ attempt, baseMs, capMs, random }: RetryPause): number {
  return random * Math.min(capMs, baseMs * 2 ** (attempt - 1));
}
