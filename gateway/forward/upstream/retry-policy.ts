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
 * A request is tried again when it cannot have reached a target. Beyond that only a GET or HEAD without a body is, once,
 * when a connection that had served others closed before any octet of an answer: most likely the backend was just closing
 * it (RFC 9110 §9.2.2, RFC 9112 §9.3.1). What is lost on a fresh connection may have crashed the backend, and would crash
 * the next one.
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
  /** The attempt to come; the first is 1. */
  readonly attempt: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** From 0 up to, not including, 1. */
  readonly random: number;
}

/** Full jitter: retries of many requests that failed together do not arrive together. */
export function retryPauseMs({ attempt, baseMs, capMs, random }: RetryPause): number {
  return random * Math.min(capMs, baseMs * 2 ** (attempt - 1));
}
