import { requestedPauseMs } from '../../../shared/http/post-request.ts';
import type { Bounds } from '../../../shared/timeouts-and-sizes.ts';
import type { ClaimedDelivery, Settlement } from '../queue/delivery-queue.ts';
import type { Attempt } from './post-delivery.ts';

/**
 * Decides what follows an attempt. Each status from 200 to 299 is a success. A receiver that responds 410 (Gone) wants no further attempt.
 * After every other response, and without a response, the attempt is repeated for three days.
 *
 * @param options.nowMs epoch ms
 * @param options.random from 0 to 1
 */
export function settlementOf(
  attempt: Attempt,
  { attempts, sinceFirstMs }: Pick<ClaimedDelivery, 'attempts' | 'sinceFirstMs'>,
  { nowMs, random, bounds }: { readonly nowMs: number; readonly random: number; readonly bounds: Bounds },
): Settlement {
  if (attempt.kind === 'cancelled') return { kind: 'returned' };
  const status = attempt.kind === 'response' ? attempt.status : undefined;
  if (status !== undefined && status >= 200 && status <= 299) return { kind: 'delivered', status };
  const error = attempt.kind === 'response' ? statusText(attempt.status) : attempt.error;
  const leftMs = bounds.webhookRetriesMs - sinceFirstMs;
  if (status === 410 || leftMs <= 0) return { kind: 'failed', status, error };
  const requestedMs = attempt.kind === 'response' ? requestedPauseMs(attempt, nowMs) : 0;
  const pauseMs = Math.max(
    retryPauseMs(attempts, random, bounds),
    Math.min(requestedMs, bounds.webhookRetryAfterMaxMs),
  );
  return { kind: 'retry', pauseMs: Math.min(pauseMs, leftMs), status, error };
}

/**
 * The pause after a failed attempt. The random part keeps deliveries apart that have failed at the same time.
 *
 * @param attempts the number of earlier attempts
 */
function retryPauseMs(attempts: number, random: number, bounds: Bounds): number {
  const { webhookRetryMs, webhookRetryFactor, webhookRetryPauseMaxMs } = bounds;
  return Math.min(webhookRetryMs * webhookRetryFactor ** attempts, webhookRetryPauseMaxMs) * (1 - random / 4);
}

function statusText(status: number): string {
  if (status === 410) return 'status 410: the receiver wants no more events';
  return status >= 300 && status <= 399 ? `status ${status}: a redirect is not followed` : `status ${status}`;
}
