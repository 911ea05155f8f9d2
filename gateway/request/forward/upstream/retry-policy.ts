import type { TransportFailure } from '../../transport/target-request.ts';

interface FailedAttempt {
  readonly failure: TransportFailure;
  readonly method: string;
  readonly hasBody: boolean;
  /** Attempts of this request that lost their connection, including this one. */
  readonly losses: number;
  /** Attempts so far, including this one. */
  readonly attempts: number;
  readonly attemptsMax: number;
}

/**
 * Whether a failed request may be sent again.
 *
 * - Always if no octet of the request can have reached a target.
 * - Once if the request is a GET or HEAD without a body, and its reused connection closed before any octet of the response. The
 *   target has probably closed the connection as idle. A proxy must not retry methods that are not idempotent, and should not retry
 *   a failed automatic retry (RFC 9110 §9.2.2).
 * - Never if the request was written on a new connection. It may have crashed the target, and could crash the next target.
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

/** The pause before a retry, with full jitter, so that requests that failed together are not retried together. */
export function retryPauseMs({ attempt, baseMs, capMs, random }: RetryPause): number {
  return random * Math.min(capMs, baseMs * 2 ** (attempt - 1));
}
