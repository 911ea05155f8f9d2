import type { TransportFailure } from '../transport/target-request.ts';

interface FailedAttempt {
  readonly failure: TransportFailure;
  readonly method: string;
  readonly hasBody: boolean;
  /** Attempts made, this one included. */
  readonly attempts: number;
  readonly attemptsMax: number;
}

/**
 * A request is tried again when it cannot have reached a target; beyond that only GET and HEAD without a body, when the
 * connection died before any byte of an answer: a kept-alive connection that the backend was just closing (RFC 9110 §9.2.2).
 */
export function mayRetry({ failure, method, hasBody, attempts, attemptsMax }: FailedAttempt): boolean {
  if (attempts >= attemptsMax) return false;
  if (failure.reach === 'not_reached') return true;
  return (
    failure.kind === 'lost' &&
    failure.reach === 'unanswered' &&
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
