import type { TransportFailure } from '../../transport/target-request.ts';

interface FailedAttempt {
  readonly failure: TransportFailure;
  readonly method: string;
  readonly hasBody: boolean;
  /** Attempts of this request that lost their connection, this one included. */
  readonly losses: number;
  /** Attempts made, this one included. */
  readonly attempts: number;
  readonly attemptsMax: number;
}

/**
 * Whether a failed request may be sent again.
 *
 * - If no octet of it can have reached a target, always: nothing is repeated.
 * - If it was written on a reused connection that closed before any octet of the response, the target most likely closed
 *   the connection as idle at that moment. Then a GET or HEAD without a body is sent again: a proxy must not
 *   retry methods that are not idempotent (RFC 9110 §9.2.2). It is sent again once, since an automatic retry that fails
 *   should not be retried (same section).
 * - If it was written on a new connection, never: the request may have crashed the target, and would crash the next one.
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
  /** From 0 up to, not including, 1. */
  readonly random: number;
}

/** The pause before a retry, with full jitter: requests that failed together are not sent again together. */
export function retryPauseMs({ attempt, baseMs, capMs, random }: RetryPause): number {
  return random * Math.min(capMs, baseMs * 2 ** (attempt - 1));
}
