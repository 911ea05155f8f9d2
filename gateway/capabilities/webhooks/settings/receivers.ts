import { hash } from 'node:crypto';
import type { WebhookEventType } from '../../../shared/words/event-names.js';
import type { StatedReceiver } from './schema.ts';

/** The percentages of a receiver that states none: in time to act, and at the limit. */
const defaultPercentages = [80, 100];

/** A service that receives events by webhook. */
export interface Receiver {
  /** The first 12 hex digits of the SHA-256 digest of `url`. The id is the same in all processes. */
  readonly id: string;
  /** The path of the URL may contain a token, so no log, message or response may show more than the origin. */
  readonly url: string;
  /** One or two secrets in the form `whsec_<base64>`. The first secret is the current one. No log, message or response may show them. */
  readonly secrets: readonly string[];
  readonly events: readonly WebhookEventType[];
  /** The percentages of `quota.threshold`, ascending. The list is empty if `events` does not have `quota.threshold`. */
  readonly at: readonly number[];
  /** The receiver gets only events about these keys, plans and operations (`isWantedBy`). Absent: no filter. */
  readonly keys?: readonly string[];
  readonly plans?: readonly string[];
  readonly operations?: readonly string[];
}

/** @param secrets the secrets in the file of the receiver */
export function compileReceiver(stated: StatedReceiver, secrets: readonly string[]): Receiver {
  const { url, at = defaultPercentages, keys, plans, operations } = stated;
  const events = [...new Set<WebhookEventType>(stated.events)];
  return {
    id: receiverId(url),
    url,
    secrets,
    events,
    at: events.includes('quota.threshold') ? [...new Set(at)].sort((a, b) => a - b) : [],
    ...(keys && { keys: [...new Set(keys)] }),
    ...(plans && { plans: [...new Set(plans)] }),
    ...(operations && { operations: [...new Set(operations)] }),
  };
}

function receiverId(url: string): string {
  return hash('sha256', url, 'hex').slice(0, 12);
}
